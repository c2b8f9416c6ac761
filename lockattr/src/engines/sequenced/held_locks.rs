//! For operators: lists the held locks under a prefix, and force-releases a lock.

use std::slice;

use futures_util::{StreamExt, stream};

use super::gate::Purpose;
use super::queue_order::served;
use super::recipe::{ClaimEntries, Entry, LockQueue, LockQueues, LockRecipe};
use super::shared::Shared;
use super::value;
use crate::store::{LockKey, Sharing, StoreError};
use crate::{FencingToken, HeldLock, HeldLocks, HolderId};

/// How many locks are queried at once. More would only wait in the connection, where their response
/// timeout already runs.
const MAX_CONCURRENT_READS: usize = 64;

impl<E: LockRecipe> Shared<E> {
    /// Returns the locks held under names that begin with `prefix`.
    pub(super) async fn held_locks(&self, prefix: &str) -> Result<HeldLocks, StoreError> {
        let LockQueues { queues, left_out } = self.recipe.queues(prefix).await?;
        let reads: Vec<_> = queues.into_iter().map(|queue| self.held(queue)).collect();
        let mut locks = stream::iter(reads).buffer_unordered(MAX_CONCURRENT_READS);
        let mut held = HeldLocks { left_out, ..HeldLocks::default() };
        while let Some(lock) = locks.next().await {
            held.locks.extend(lock?);
        }
        Ok(held)
    }

    /// Returns the lock of this queue, if any claim holds it.
    async fn held(&self, queue: LockQueue) -> Result<Option<HeldLock>, StoreError> {
        let LockQueue { key, mut entries, mut written } = queue;
        let mut waiting = entries.split_off(served(&entries)).len();
        let (mut first, mut others) = (None, 0_u32);
        for entry in &entries {
            match self.holds(&key, entry).await? {
                false => waiting += 1,
                true if first.is_none() => first = Some(entry),
                true => others = others.saturating_add(1),
            }
        }
        let Some(first) = first else { return Ok(None) };
        let known = written.iter().position(|(id, _)| *id == first.id);
        let written = match known {
            Some(known) => Some(written.swap_remove(known).1),
            None => self.recipe.value(&key, first).await?,
        };
        // The entry is gone by now.
        let Some(written) = written else { return Ok(None) };
        let holder = match self.local_claim(first.token) {
            Some((holder, _)) => holder,
            None => value::holder(&written.value),
        };
        let mut held = HeldLock::new(key.as_str(), holder);
        held.holders = others.saturating_add(1);
        held.shared = first.sharing != Sharing::Exclusive;
        held.waiting = u64::try_from(waiting).unwrap_or(u64::MAX);
        held.fencing_token = Some(FencingToken::from_counter(written.counter));
        Ok(Some(held))
    }

    /// Removes the entry of the holder with this id. Returns whether it was there.
    pub(super) async fn force_release(
        &self,
        key: &LockKey,
        holder: HolderId,
    ) -> Result<bool, StoreError> {
        let queue = self.recipe.latest_queue(key).await?;
        for entry in &queue[..served(&queue)] {
            let id = match self.local_claim(entry.token) {
                Some((holder, _)) => Some(holder.id),
                None => self.recipe.value(key, entry).await?.map(|it| HolderId::of(it.value)),
            };
            if id != Some(holder) || !self.holds(key, entry).await? {
                continue;
            }
            let (keys, entries) = (slice::from_ref(key), slice::from_ref(entry));
            let held = [ClaimEntries { keys, token: entry.token, session: 0, entries }];
            let permit = self.admit(Purpose::Release, 1).await?;
            return self.recipe.leave(&held, permit).await.pop().unwrap_or(Ok(false));
        }
        Ok(false)
    }

    /// Whether the claim of an entry that has its turn in this queue holds all its locks.
    async fn holds(&self, key: &LockKey, entry: &Entry) -> Result<bool, StoreError> {
        if !entry.several {
            return Ok(true);
        }
        if let Some((_, has_all)) = self.local_claim(entry.token) {
            return Ok(has_all);
        }
        match self.recipe.value(key, entry).await? {
            Some(written) => self.has_its_turn_elsewhere(&written.value, entry.token).await,
            None => Ok(false),
        }
    }
}
