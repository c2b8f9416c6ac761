//! Renewals and releases of many claims at once.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::join_all;
use redis::Value;

use super::call::Call;
use super::node::Effect;
use super::replicas::ReplicatedReply;
use super::servers::{Route, RoutedReply};
use super::{RedisStore, request};
use crate::store::{Claim, ReleaseOutcome, ReleaseRequest, RenewOutcome, RenewRequest, StoreError};

/// The most locks in one script, unless one claim has more: a longer run would block the server's
/// other clients.
const BATCH: usize = 100;

/// A request about a claim, which can be made about each of its parts.
pub(super) trait Item: Clone {
    fn claim(&self) -> &Arc<Claim>;

    /// Returns the same request for another claim.
    fn of(&self, claim: Arc<Claim>) -> Self;

    /// Returns the effect of the script on leases.
    fn effect(&self) -> Effect;

    fn script<'s>(store: &'s RedisStore, items: &[&Self], fence: &str) -> Call<'s>;
}

impl Item for RenewRequest {
    fn claim(&self) -> &Arc<Claim> {
        &self.claim
    }

    fn of(&self, claim: Arc<Claim>) -> Self {
        Self { claim, ..self.clone() }
    }

    fn effect(&self) -> Effect {
        Effect::Extend
    }

    fn script<'s>(store: &'s RedisStore, items: &[&Self], fence: &str) -> Call<'s> {
        request::renew(&store.scripts, items, fence)
    }
}

impl Item for ReleaseRequest {
    fn claim(&self) -> &Arc<Claim> {
        &self.claim
    }

    fn of(&self, claim: Arc<Claim>) -> Self {
        Self { claim, ..self.clone() }
    }

    fn effect(&self) -> Effect {
        if self.after.is_zero() { Effect::Release } else { Effect::Shorten }
    }

    fn script<'s>(store: &'s RedisStore, items: &[&Self], fence: &str) -> Call<'s> {
        request::release(&store.scripts, items, fence)
    }
}

impl RedisStore {
    /// Renews leases. Each is renewed if all of its parts are.
    pub(super) async fn renew_all(
        &self,
        items: &[RenewRequest],
    ) -> Vec<Result<RenewOutcome, StoreError>> {
        let outcome = |mut parts: Vec<Result<bool, StoreError>>| {
            // One lost part loses the lease, whatever the other replies are.
            if parts.iter().any(|held| matches!(held, Ok(false))) {
                return Ok(RenewOutcome::NotHeld);
            }
            parts.drain(..).collect::<Result<Vec<_>, _>>().map(|_| RenewOutcome::Renewed)
        };
        self.run_on_routes(items).await.into_iter().map(outcome).collect()
    }

    /// Releases locks. Each is released if all of its parts are.
    pub(super) async fn release_all(
        &self,
        items: &[ReleaseRequest],
    ) -> Vec<Result<ReleaseOutcome, StoreError>> {
        let outcome = |parts: Vec<Result<bool, StoreError>>| {
            // A release with an unknown outcome must be sent again.
            let held = parts.into_iter().collect::<Result<Vec<_>, _>>()?;
            let all = held.into_iter().all(|held| held);
            Ok(if all { ReleaseOutcome::Released } else { ReleaseOutcome::NotHeld })
        };
        self.run_on_routes(items).await.into_iter().map(outcome).collect()
    }

    /// Returns whether each part of each claim was held, in the order of `items`. Sends one script
    /// for each route and batch, all at once.
    async fn run_on_routes<I: Item>(&self, items: &[I]) -> Vec<Vec<Result<bool, StoreError>>> {
        if let [item] = items
            && let Some(route) = self.servers.single_route(item.claim())
        {
            return vec![self.run_on_route(route, item.effect(), &[item]).await];
        }
        let mut by_route = HashMap::<_, Vec<_>>::new();
        for (index, item) in items.iter().enumerate() {
            if let Some(route) = self.servers.single_route(item.claim()) {
                let target = (route, item.effect());
                by_route.entry(target).or_default().push((index, Cow::Borrowed(item)));
                continue;
            }
            for (route, part) in self.servers.parts(item.claim()) {
                let target = (route, item.effect());
                by_route.entry(target).or_default().push((index, Cow::Owned(item.of(part))));
            }
        }
        let batches = by_route.iter().flat_map(|(&target, batch)| {
            in_batches(batch).into_iter().map(move |batch| (target, batch))
        });
        let replies = batches.map(|((route, effect), batch)| async move {
            let items: Vec<&I> = batch.iter().map(|(_, item)| item.as_ref()).collect();
            (batch, self.run_on_route(route, effect, &items).await)
        });
        let mut outcomes = vec![Vec::new(); items.len()];
        for (batch, replies) in join_all(replies).await {
            for ((index, _), reply) in batch.iter().zip(replies) {
                outcomes[*index].push(reply);
            }
        }
        outcomes
    }

    /// Sends the requests of one route. Returns one result for each item.
    async fn run_on_route<I: Item>(
        &self,
        route: Route,
        effect: Effect,
        items: &[&I],
    ) -> Vec<Result<bool, StoreError>> {
        let script = I::script(self, items, &self.servers.fence(route));
        let mut first = None;
        loop {
            let RoutedReply { reply: ReplicatedReply { value, replicated }, live, .. } =
                match self.servers.invoke::<Value>(route, effect, &script).await {
                    Ok(routed) => routed,
                    Err(error) => return vec![Err(error); items.len()],
                };
            let Some((held, unfinished)) = request::held(&value, items.len()) else {
                return vec![Err(live.distrusted()); items.len()];
            };
            // Runs again if there are more waiters than one run reads. The first reply says what
            // the claims held.
            let (held, replicated) = first.take().unwrap_or((held, replicated));
            if unfinished {
                first = Some((held, replicated));
                continue;
            }
            let confirmed = |held| match held {
                true => replicated.clone().map(|()| true),
                // That the claim does not hold it is a fact, whatever the replicas have.
                false => Ok(false),
            };
            return held.into_iter().map(confirmed).collect();
        }
    }
}

/// Splits requests into batches of at most [`BATCH`] locks.
fn in_batches<'a, I: Item>(batch: &'a [(usize, Cow<'a, I>)]) -> Vec<&'a [(usize, Cow<'a, I>)]> {
    let (mut batches, mut begins, mut locks) = (Vec::new(), 0, 0);
    for (nth, (_, item)) in batch.iter().enumerate() {
        let more = item.claim().keys().len();
        if nth > begins && locks + more > BATCH {
            batches.push(&batch[begins..nth]);
            (begins, locks) = (nth, 0);
        }
        locks += more;
    }
    batches.push(&batch[begins..]);
    batches
}
