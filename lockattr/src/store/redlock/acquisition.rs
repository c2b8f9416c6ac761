//! One acquisition on all nodes: counted as the answers come, given back where it came to nothing.

use tokio::time::Instant;

use super::RedlockStore;
use super::round::Round;
use super::votes::Votes;
use crate::store::{Acquire, Acquiring, Releasing, Renew, Renewal, StoreError, Waiting};

impl RedlockStore {
    pub(super) async fn acquire_on_all(&self, asked: &Acquiring) -> Result<Acquire, StoreError> {
        let began = Instant::now();
        let waits = asked.waiting != Waiting::Not;
        let mut wish = asked.clone().hint(self.next_hint());
        if waits {
            wish.waiting = Waiting::Told { again: asked.claim.in_line().is_some() };
            asked.claim.enters_line(asked.ttl, wish.waiting);
        }
        let needed = self.quorum.needed(asked.claim.sharing());
        let mut votes = Votes::of(self.nodes.len(), needed);
        let mut round = Round::new(self.nodes.iter().map(|node| node.acquire(&wish)));
        while let Some((node, answer)) = round.next().await {
            votes.count(node, answer);
            if votes.are_enough() {
                return self.issue(asked, &votes, needed).await;
            }
            if votes.are_contention() {
                break;
            }
        }
        round.came().into_iter().for_each(|(node, answer)| votes.count(node, answer));
        if !votes.are_contention() {
            return Err(votes.outage());
        }
        self.give_back(asked, &votes).await;
        let (holder, again) = votes.contention(began.elapsed(), rand::random());
        Ok(Acquire::Held { holder, in_line: waits.then_some(again) })
    }

    /// The number of an acquisition, once enough nodes have granted it: the greatest that one of
    /// them gave. It counts once enough of them know it: they gave it themselves, or took it while
    /// the lock was still ours there (`docs/fencing-over-redlock.md` has the proof).
    async fn issue(
        &self,
        asked: &Acquiring,
        votes: &Votes,
        needed: usize,
    ) -> Result<Acquire, StoreError> {
        let (greatest, known) = votes.greatest();
        let acquired = Acquire::Acquired { fencing: greatest, wanted: votes.wanted() };
        if known >= needed {
            return Ok(acquired);
        }
        let write_back = [Renewal::new(asked.claim.clone(), asked.ttl).fenced(greatest)];
        let mut round = Round::new(self.nodes.iter().map(|node| node.renew(&write_back)));
        let mut accepted = 0;
        while let Some((_, mut answers)) = round.next().await {
            if matches!(answers.pop(), Some(Ok(Renew::Renewed))) {
                accepted += 1;
            }
            if accepted >= needed {
                return Ok(acquired);
            }
        }
        Err(StoreError::new(format!(
            "its fencing token reached {accepted} nodes only, of {needed} that must know it"
        )))
    }

    /// Gives back what a refused claim got. One that comes back to ask again does so in silence, and
    /// keeps the places where it stands; what it got without our knowing is its own then.
    async fn give_back(&self, asked: &Acquiring, votes: &Votes) {
        let comes_back = asked.waiting != Waiting::Not;
        let release = |node: usize| {
            let (node, releasing) = (self.nodes[node].clone(), Releasing::new(asked.claim.clone()));
            let releases = [if comes_back { releasing.quietly() } else { releasing }];
            async move { node.release(&releases).await }
        };
        if !comes_back {
            let silent = (0..self.nodes.len()).filter(|&node| votes.is_silent(node));
            Round::new(silent.map(release)).see_through();
        }
        // Waited for: the next question must not overtake it.
        let mut granted = Round::new(votes.granted().map(release));
        while granted.next().await.is_some() {}
    }
}
