//! Requests for the map of a cluster: at once for a caller that needs it, and soon after it becomes
//! doubtful.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use redis::Value;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until, timeout};

use super::map::{self, Share};
use super::{Cluster, Known, Member};
use crate::engines::redis::cluster::slot::SLOTS;
use crate::store::StoreError;

/// The least time between two maps, unless a caller waits for one.
const REFRESH_PAUSE: Duration = Duration::from_millis(100);

/// How long to wait for a node before the next one gets the request as well.
const NEXT_NODE_AFTER: Duration = Duration::from_millis(100);

impl Cluster {
    /// Requests the map, unless another caller receives it while this one waits.
    pub(super) async fn refresh(&self) -> Result<(), StoreError> {
        let seen = self.version.load(Ordering::Acquire);
        let _guard = self.refresh_lock.lock().await;
        if self.version.load(Ordering::Acquire) != seen {
            return Ok(());
        }
        let shares = self.query_members().await?;
        self.apply(&shares);
        Ok(())
    }

    /// Starts a task that requests the map, unless one is running.
    pub(in crate::engines::redis) fn refresh_soon(&self) {
        let Ok(runtime) = Handle::try_current() else { return };
        if let Some(guard) = RefreshGuard::try_begin(&self.me) {
            let since = self.known().since;
            runtime.spawn(async move {
                if let Some(since) = since {
                    sleep_until(since + REFRESH_PAUSE).await;
                }
                if let Some(cluster) = guard.0.upgrade() {
                    // After a failure, the next refused request starts a task again.
                    let _failed = cluster.refresh().await;
                }
            });
        }
    }

    /// Returns the first map that a node sends. Asks the known nodes, beginning with a random one,
    /// and then those of the URL.
    async fn query_members(&self) -> Result<Vec<Share>, StoreError> {
        let mut members: Vec<Arc<Member>> = self.known().members.values().cloned().collect();
        let start = rand::random_range(0..members.len().max(1));
        members.rotate_left(start);
        for seed in &self.seeds {
            let seed = self.member(seed)?;
            if !members.iter().any(|member| Arc::ptr_eq(member, &seed)) {
                members.push(seed);
            }
        }
        let (mut queries, mut rest) = (FuturesUnordered::new(), members.into_iter());
        let mut failed = StoreError::new("the cluster has no nodes").not_sent();
        loop {
            let next = rest.next();
            let limit = if next.is_some() { NEXT_NODE_AFTER } else { Duration::MAX };
            queries.extend(next.map(shares));
            match timeout(limit, queries.next()).await {
                Ok(Some(Ok(shares))) => return Ok(shares),
                Ok(Some(Err(error))) => failed = error,
                Ok(None) => return Err(failed),
                Err(_) => {}
            }
        }
    }

    /// Replaces the map. A node that lost a slot has not notified the slot's waiters, so they ask
    /// again.
    fn apply(&self, shares: &[Share]) {
        let mut owners = vec![None; usize::from(SLOTS)];
        let mut lost = Vec::new();
        let mut known = self.known();
        let mut members = HashMap::new();
        for Share { slots, address } in shares {
            let of_this = match known.members.get(address) {
                Some(member) => member.clone(),
                // No node is at an address that cannot be parsed.
                None => {
                    match members.get(address).cloned().map_or_else(|| self.new_member(address), Ok)
                    {
                        Ok(member) => member,
                        Err(_) => continue,
                    }
                }
            };
            members.insert(address.clone(), of_this.clone());
            for slot in slots.clone() {
                owners[usize::from(slot)] = Some(of_this.clone());
            }
        }
        for (slot, (before, now)) in (0..).zip(known.owners.iter().zip(&owners)) {
            if let (Some(before), Some(now)) = (before, now)
                && !Arc::ptr_eq(before, now)
            {
                lost.push((slot, before.clone()));
            }
        }
        let since = Some(Instant::now());
        let before = std::mem::replace(&mut *known, Known { members, owners, since });
        let left: Vec<_> = before
            .members
            .into_iter()
            .filter(|(address, _)| !known.members.contains_key(address))
            .collect();
        let members: Vec<_> = known.members.values().cloned().collect();
        drop(known);
        self.version.fetch_add(1, Ordering::AcqRel);
        if !lost.is_empty() {
            // A slot's new master may have been a replica that lagged behind.
            members.iter().for_each(|member| member.node.clear_raised());
        }
        lost.iter().for_each(|(slot, member)| member.notifications.missed_in(*slot));
        left.iter().for_each(|(_, member)| member.note_removed());
    }
}

async fn shares(member: Arc<Member>) -> Result<Vec<Share>, StoreError> {
    let reply = member.send_command::<Value>(redis::cmd("CLUSTER").arg("SLOTS")).await?;
    let invalid = || StoreError::new(format!("{} sent an invalid slot map", member.address));
    let mut shares = map::read(reply).ok_or_else(invalid)?;
    if shares.is_empty() {
        return Err(StoreError::new(format!("{} reports no slots", member.address)).not_sent());
    }
    for share in &mut shares {
        share.address = member.complete(&share.address);
    }
    Ok(shares)
}

/// The right to run the refresh task, of which there is one. Released even if its runtime ends.
struct RefreshGuard(Weak<Cluster>);

impl RefreshGuard {
    fn try_begin(cluster: &Weak<Cluster>) -> Option<Self> {
        let first = !cluster.upgrade()?.refreshing.swap(true, Ordering::AcqRel);
        first.then(|| Self(cluster.clone()))
    }
}

impl Drop for RefreshGuard {
    fn drop(&mut self) {
        if let Some(cluster) = self.0.upgrade() {
            cluster.refreshing.store(false, Ordering::Release);
        }
    }
}
