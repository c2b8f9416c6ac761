//! The requests that wait for a connection, and which of them it sends next, together.
//!
//! A connection serves one statement at a time. While it waits for a reply, requests come in; the
//! next statement takes all of one kind. Nothing here knows a server or a statement.

use std::collections::{HashMap, VecDeque};

use crate::store::OwnerToken;

/// The most requests in one statement.
const LARGEST_BATCH: usize = 64;

/// What a request wants, in the order in which they are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Extends a lease. Comes first, because a lease must not be lost to a long queue.
    Renewal,
    /// Frees a lock, which others wait for.
    Release,
    /// Acquires a free lock.
    Acquire,
    /// Anything else. Sent by itself.
    Single,
}

/// A request of a caller.
pub(super) trait Request {
    fn kind(&self) -> Kind;

    /// The claim, if it may have to be undone by a release.
    fn undone_by(&self) -> Option<OwnerToken>;

    /// The claim that it releases.
    fn releases(&self) -> Option<OwnerToken>;

    /// Whether its caller has gone, and it need not be sent.
    fn is_abandoned(&self) -> bool;
}

/// The queues of a connection, one for each kind.
pub(super) struct Requests<R> {
    renewals: VecDeque<R>,
    releases: VecDeque<R>,
    acquires: VecDeque<R>,
    singles: VecDeque<R>,
    /// How many queued requests each claim has that a release undoes.
    undoable: HashMap<OwnerToken, usize>,
    /// Whether the last batch was of acquires. They take turns with single requests.
    acquired: bool,
}

impl<R: Request> Requests<R> {
    pub(super) fn new() -> Self {
        let (renewals, releases, acquires, singles) = Default::default();
        Self { renewals, releases, acquires, singles, undoable: HashMap::new(), acquired: false }
    }

    pub(super) fn push(&mut self, request: R) {
        if let Some(token) = request.undone_by() {
            *self.undoable.entry(token).or_default() += 1;
        }
        // An acquire that its caller gave up is not sent, so its release need not wait for it.
        if let Some(token) = request.releases()
            && self.undoable.contains_key(&token)
        {
            self.drop_abandoned();
        }
        match request.kind() {
            Kind::Renewal => &mut self.renewals,
            Kind::Release => &mut self.releases,
            Kind::Acquire => &mut self.acquires,
            Kind::Single => &mut self.singles,
        }
        .push_back(request);
    }

    /// The requests to send next in one statement: all of one kind, as many as a power of two, so
    /// that there are few different statements.
    pub(super) fn next_batch(&mut self) -> Option<Vec<R>> {
        self.drop_abandoned();
        let batch = take(&mut self.renewals, |_| true);
        if !batch.is_empty() {
            return Some(batch);
        }
        // A release takes effect after the acquire that it undoes.
        let undoable = &self.undoable;
        let ready =
            |release: &R| release.releases().is_none_or(|token| !undoable.contains_key(&token));
        let batch = take(&mut self.releases, ready);
        if !batch.is_empty() {
            return Some(batch);
        }
        let single = self.acquires.is_empty() || (self.acquired && !self.singles.is_empty());
        self.acquired = !single;
        let batch: Vec<R> = match single {
            true => self.singles.pop_front().into_iter().collect(),
            false => take(&mut self.acquires, |_| true),
        };
        for token in batch.iter().filter_map(R::undone_by) {
            forget(&mut self.undoable, token);
        }
        (!batch.is_empty()).then_some(batch)
    }

    fn drop_abandoned(&mut self) {
        for queue in [&mut self.acquires, &mut self.singles] {
            queue.retain(|request| {
                let abandoned = request.is_abandoned();
                if let Some(token) = request.undone_by().filter(|_| abandoned) {
                    forget(&mut self.undoable, token);
                }
                !abandoned
            });
        }
    }
}

fn forget(undoable: &mut HashMap<OwnerToken, usize>, token: OwnerToken) {
    if let Some(count) = undoable.get_mut(&token) {
        *count -= 1;
        if *count == 0 {
            undoable.remove(&token);
        }
    }
}

/// Takes the first requests that are ready.
fn take<R>(queue: &mut VecDeque<R>, ready: impl Fn(&R) -> bool) -> Vec<R> {
    let count = queue.iter().filter(|request| ready(request)).take(LARGEST_BATCH).count();
    let mut count = if count == 0 { 0 } else { 1 << count.ilog2() };
    if count == 0 {
        return Vec::new();
    }
    if count == queue.len() {
        return queue.drain(..).collect();
    }
    let mut batch = Vec::with_capacity(count);
    let mut rest = VecDeque::with_capacity(queue.len() - count);
    for request in queue.drain(..) {
        if count > 0 && ready(&request) {
            count -= 1;
            batch.push(request);
        } else {
            rest.push_back(request);
        }
    }
    *queue = rest;
    batch
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq)]
    struct Fake(Kind, OwnerToken, bool);

    impl Request for Fake {
        fn kind(&self) -> Kind {
            self.0
        }

        fn undone_by(&self) -> Option<OwnerToken> {
            Some(self.1).filter(|_| matches!(self.0, Kind::Acquire | Kind::Single))
        }

        fn releases(&self) -> Option<OwnerToken> {
            Some(self.1).filter(|_| self.0 == Kind::Release)
        }

        fn is_abandoned(&self) -> bool {
            self.2
        }
    }

    fn fake(kind: Kind) -> Fake {
        Fake(kind, OwnerToken::random(1), false)
    }

    fn kinds(requests: &mut Requests<Fake>) -> Vec<(Kind, usize)> {
        let next = std::iter::from_fn(|| requests.next_batch());
        next.map(|batch| (batch[0].0, batch.len())).collect()
    }

    /// Red without: the order of the queues, the turns, the limit, or the power of two.
    #[test]
    fn renewals_come_first_then_releases_and_acquires_take_turns_with_the_rest() {
        let mut requests = Requests::new();
        for kind in [Kind::Single, Kind::Acquire, Kind::Release, Kind::Renewal] {
            (0..3).for_each(|_| requests.push(fake(kind)));
        }
        (0..70).for_each(|_| requests.push(fake(Kind::Release)));
        let expected = [
            (Kind::Renewal, 2),
            (Kind::Renewal, 1),
            (Kind::Release, 64),
            (Kind::Release, 8),
            (Kind::Release, 1),
            (Kind::Acquire, 2),
            (Kind::Single, 1),
            (Kind::Acquire, 1),
            (Kind::Single, 1),
            (Kind::Single, 1),
        ];
        assert_eq!(kinds(&mut requests), expected);
    }

    /// Red without: `ready`. The release would find nothing, and the acquire after it would take a
    /// lock that no caller knows of.
    #[test]
    fn a_release_never_overtakes_the_acquire_that_it_undoes() {
        for kind in [Kind::Acquire, Kind::Single] {
            let (acquire, mut requests) = (fake(kind), Requests::new());
            requests.push(acquire.clone());
            requests.push(Fake(Kind::Release, acquire.1, false));
            requests.push(fake(Kind::Release));
            assert_eq!(kinds(&mut requests), [(Kind::Release, 1), (kind, 1), (Kind::Release, 1)]);
            assert!(requests.undoable.is_empty());
        }
    }

    /// Red without: `drop_abandoned`.
    #[test]
    fn an_acquire_whose_caller_has_gone_is_not_sent_and_delays_no_release() {
        let (mut acquire, mut requests) = (fake(Kind::Acquire), Requests::new());
        acquire.2 = true;
        requests.push(acquire.clone());
        requests.push(Fake(Kind::Release, acquire.1, false));
        assert_eq!(kinds(&mut requests), [(Kind::Release, 1)]);
        assert!(requests.undoable.is_empty());
    }
}
