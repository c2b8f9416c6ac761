//! In which order questions go that are asked one after the other and concern the same: members answer
//! what they are asked at once in any order.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::store::OwnerToken;

/// The questions that were not answered yet. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct RequestOrder(Arc<Mutex<Underway>>);

#[derive(Default)]
struct Underway {
    /// The last question to enter of each claim.
    entering: HashMap<OwnerToken, Ended>,
    /// The removals from each line.
    leaving: HashMap<Arc<str>, Vec<Ended>>,
}

/// Nothing is ever sent: it ends with the question.
type Ended = watch::Receiver<()>;

/// A question's place among the others; those that have to come behind it wait until it is dropped.
pub(super) struct OrderedRequest {
    order: RequestOrder,
    token: Option<OwnerToken>,
    queues: Vec<Arc<str>>,
    before: Vec<Ended>,
    this: watch::Sender<()>,
}

impl RequestOrder {
    /// A question to enter these lines, noted before it is sent: behind the last of the same claim, and
    /// behind whatever leaves them, as it may be what is in its way.
    pub(super) fn begin_enter(&self, token: OwnerToken, queues: &[String]) -> OrderedRequest {
        let this = watch::Sender::new(());
        let mut underway = self.lock();
        let leaving = queues.iter().filter_map(|queue| underway.leaving.get(queue.as_str()));
        let mut before: Vec<_> = leaving.flatten().cloned().collect();
        before.extend(underway.entering.insert(token, this.subscribe()));
        drop(underway);
        OrderedRequest { order: self.clone(), token: Some(token), queues: Vec::new(), before, this }
    }

    /// A removal of this claim from these lines: behind its own question to enter.
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
        // Nothing in there can panic half-way, so a poisoned lock is still good.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OrderedRequest {
    /// Returns once it has come: each was noted after all that it waits for, so it does come.
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
            // Another of the same claim may have come behind.
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

    async fn comes(turn: &mut OrderedRequest) -> bool {
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
        assert!(comes(&mut order.begin_enter(one, &queues(&["c"]))).await, "in another line");
        assert!(!comes(&mut behind).await);
        drop(leaves);
        assert!(!comes(&mut behind).await);
        drop(leaves_too);
        assert!(comes(&mut behind).await);
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
        assert!(!comes(&mut leaves).await);
        drop(enters);
        assert!(comes(&mut leaves).await);
        assert!(!comes(&mut again).await);
        drop(leaves);
        assert!(comes(&mut again).await);
    }
}
