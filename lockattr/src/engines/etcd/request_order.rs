//! Orders requests that are sent one after the other for the same claim or queue, because members
//! may execute concurrent requests in any order.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::watch;

use crate::platform::sync::{Mutex, MutexGuard};
use crate::store::OwnerToken;

/// The requests without a reply. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct RequestOrder(Arc<Mutex<Underway>>);

#[derive(Default)]
struct Underway {
    /// The last request to enter of each claim.
    entering: HashMap<OwnerToken, Ended>,
    /// The removals from each queue.
    leaving: HashMap<Arc<str>, Vec<Ended>>,
}

/// Carries no messages: it closes when the request ends.
type Ended = watch::Receiver<()>;

/// A request's position in the order. Later requests wait until it is dropped.
pub(super) struct OrderedRequest {
    order: RequestOrder,
    token: Option<OwnerToken>,
    queues: Vec<Arc<str>>,
    before: Vec<Ended>,
    this: watch::Sender<()>,
}

impl RequestOrder {
    /// Orders a request to enter these queues, before it is sent. It comes after the last one of
    /// the same claim, and after all removals from these queues, because it may wait for what they
    /// remove.
    pub(super) fn begin_enter(&self, token: OwnerToken, queues: &[String]) -> OrderedRequest {
        let this = watch::Sender::new(());
        let mut underway = self.lock();
        let leaving = queues.iter().filter_map(|queue| underway.leaving.get(queue.as_str()));
        let mut before: Vec<_> = leaving.flatten().cloned().collect();
        before.extend(underway.entering.insert(token, this.subscribe()));
        drop(underway);
        OrderedRequest { order: self.clone(), token: Some(token), queues: Vec::new(), before, this }
    }

    /// Orders a removal of this claim from these queues: after the claim's own request to enter.
    pub(super) fn begin_leave(&self, token: OwnerToken, queues: &[String]) -> OrderedRequest {
        let this = watch::Sender::new(());
        let queues: Vec<Arc<str>> = queues.iter().map(|queue| queue.as_str().into()).collect();
        let mut underway = self.lock();
        for queue in &queues {
            underway.leaving.entry(queue.clone()).or_default().push(this.subscribe());
        }
        let before = underway.entering.get(&token).cloned().into_iter().collect();
        drop(underway);
        OrderedRequest { order: self.clone(), token: None, queues, before, this }
    }

    fn lock(&self) -> MutexGuard<'_, Underway> {
        // No panic can leave this half-changed, so a poisoned mutex is safe to use.
        self.0.lock()
    }
}

impl OrderedRequest {
    /// Returns once all earlier requests have ended. They do not wait for this one, so it does
    /// return.
    pub(super) async fn wait_for_earlier(&mut self) {
        for before in &mut self.before {
            drop(before.changed().await);
        }
    }
}

impl Drop for OrderedRequest {
    fn drop(&mut self) {
        let this = self.this.subscribe();
        let mut underway = self.order.lock();
        if let Some(token) = self.token {
            // A later request of the same claim may have replaced it.
            if underway.entering.get(&token).is_some_and(|last| last.same_channel(&this)) {
                underway.entering.remove(&token);
            }
        }
        for queue in &self.queues {
            let Some(leaving) = underway.leaving.get_mut(queue) else { continue };
            leaving.retain(|one| !one.same_channel(&this));
            if leaving.is_empty() {
                underway.leaving.remove(queue);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    async fn is_ready(turn: &mut OrderedRequest) -> bool {
        timeout(Duration::from_secs(1), turn.wait_for_earlier()).await.is_ok()
    }

    fn queues(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_enters_a_line_comes_behind_those_who_leave_it() {
        let order = RequestOrder::default();
        let (one, other) = (OwnerToken::random(1), OwnerToken::random(1));
        let leaves = order.begin_leave(one, &queues(&["a", "b"]));
        let leaves_too = order.begin_leave(one, &queues(&["b"]));
        let mut behind = order.begin_enter(other, &queues(&["b", "c"]));
        assert!(is_ready(&mut order.begin_enter(one, &queues(&["c"]))).await, "in another queue");
        assert!(!is_ready(&mut behind).await);
        drop(leaves);
        assert!(!is_ready(&mut behind).await);
        drop(leaves_too);
        assert!(is_ready(&mut behind).await);
        drop(behind);
        let underway = order.lock();
        assert!(underway.leaving.is_empty() && underway.entering.is_empty(), "left");
    }

    #[tokio::test(start_paused = true)]
    async fn a_claim_leaves_behind_its_own_question_and_none_of_a_later_one() {
        let order = RequestOrder::default();
        let (one, other) = (OwnerToken::random(1), OwnerToken::random(1));
        let enters = order.begin_enter(one, &queues(&["a"]));
        let _others = order.begin_enter(other, &queues(&["a"]));
        let mut leaves = order.begin_leave(one, &queues(&["a"]));
        let mut again = order.begin_enter(one, &queues(&["a"]));
        assert!(!is_ready(&mut leaves).await);
        drop(enters);
        assert!(is_ready(&mut leaves).await);
        assert!(!is_ready(&mut again).await);
        drop(leaves);
        assert!(is_ready(&mut again).await);
    }
}
