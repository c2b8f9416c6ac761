//! In which order questions go that are asked one after the other and concern the same: members answer
//! what they are asked at once in any order.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::store::OwnerToken;

/// The questions that were not answered yet. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Order(Arc<Mutex<Underway>>);

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
pub(super) struct Turn {
    order: Order,
    token: Option<OwnerToken>,
    lines: Vec<Arc<str>>,
    before: Vec<Ended>,
    this: watch::Sender<()>,
}

impl Order {
    /// A question to enter these lines, noted before it is sent: behind the last of the same claim, and
    /// behind whatever leaves them, as it may be what is in its way.
    pub(super) fn enters(&self, token: OwnerToken, lines: &[String]) -> Turn {
        let this = watch::Sender::new(());
        let mut underway = self.lock();
        let leaving = lines.iter().filter_map(|line| underway.leaving.get(line.as_str()));
        let mut before: Vec<_> = leaving.flatten().cloned().collect();
        before.extend(underway.entering.insert(token, this.subscribe()));
        drop(underway);
        Turn { order: self.clone(), token: Some(token), lines: Vec::new(), before, this }
    }

    /// A removal of this claim from these lines: behind its own question to enter.
    pub(super) fn leaves(&self, token: OwnerToken, lines: &[String]) -> Turn {
        let this = watch::Sender::new(());
        let lines: Vec<Arc<str>> = lines.iter().map(|line| line.as_str().into()).collect();
        let mut underway = self.lock();
        for line in &lines {
            underway.leaving.entry(line.clone()).or_default().push(this.subscribe());
        }
        let before = underway.entering.get(&token).cloned().into_iter().collect();
        drop(underway);
        Turn { order: self.clone(), token: None, lines, before, this }
    }

    fn lock(&self) -> MutexGuard<'_, Underway> {
        // Nothing in there can panic half-way, so a poisoned lock is still good.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Returns once it has come: each was noted after all that it waits for, so it does come.
    pub(super) async fn comes(&mut self) {
        for before in &mut self.before {
            drop(before.changed().await);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let this = self.this.subscribe();
        let mut underway = self.order.lock();
        if let Some(token) = self.token {
            // Another of the same claim may have come behind.
            if underway.entering.get(&token).is_some_and(|last| last.same_channel(&this)) {
                underway.entering.remove(&token);
            }
        }
        for line in &self.lines {
            let Some(leaving) = underway.leaving.get_mut(line) else { continue };
            leaving.retain(|one| !one.same_channel(&this));
            if leaving.is_empty() {
                underway.leaving.remove(line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    async fn comes(turn: &mut Turn) -> bool {
        timeout(Duration::from_secs(1), turn.comes()).await.is_ok()
    }

    fn lines(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    /// Red without: `leaving` in `enters`.
    #[tokio::test(start_paused = true)]
    async fn who_enters_a_line_comes_behind_those_who_leave_it() {
        let order = Order::default();
        let (one, other) = (OwnerToken::random(1), OwnerToken::random(1));
        let leaves = order.leaves(one, &lines(&["a", "b"]));
        let leaves_too = order.leaves(one, &lines(&["b"]));
        let mut behind = order.enters(other, &lines(&["b", "c"]));
        assert!(comes(&mut order.enters(one, &lines(&["c"]))).await, "in another line");
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
        let order = Order::default();
        let (one, other) = (OwnerToken::random(1), OwnerToken::random(1));
        let enters = order.enters(one, &lines(&["a"]));
        let _others = order.enters(other, &lines(&["a"]));
        let mut leaves = order.leaves(one, &lines(&["a"]));
        let mut again = order.enters(one, &lines(&["a"]));
        assert!(!comes(&mut leaves).await);
        drop(enters);
        assert!(comes(&mut leaves).await);
        assert!(!comes(&mut again).await);
        drop(leaves);
        assert!(comes(&mut again).await);
    }
}
