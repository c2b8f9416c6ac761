//! The names of this session's entries, which are used again. Pure.
//!
//! etcd keeps the name of a removed key until it is compacted, and a read of a queue passes all
//! names that were ever in it. With a new name for each claim, a lock would become slower with each
//! acquisition. So a session numbers the claims that it has in a queue at the same time, and the
//! name has a token for that number. Which claim has the name now is known here. Other processes
//! read it in the text of the entry, which begins with the claim's own token.

use std::collections::HashMap;

use super::names;
use crate::engines::sequenced::Entry;
use crate::platform::sync::{Mutex, MutexGuard};
use crate::store::OwnerToken;

/// Which claims have which names.
#[derive(Default)]
pub(super) struct EntryNames(Mutex<State>);

#[derive(Default)]
struct State {
    /// The token in the names of each number.
    tokens: Vec<OwnerToken>,
    numbers: HashMap<OwnerToken, usize>,
    /// The numbers that are used in each queue.
    used: HashMap<Box<str>, Vec<Used>>,
    /// The number of each claim, the same in all its queues.
    claims: HashMap<OwnerToken, usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Used {
    No,
    By(OwnerToken),
    /// An entry has this name that should have been removed.
    ByUnknown,
}

impl EntryNames {
    /// Returns the token in the names of this claim's entries, the same until it is
    /// [removed](Self::is_removed), and whether it is new.
    pub(super) fn of(&self, claim: OwnerToken, queues: &[String]) -> (OwnerToken, bool) {
        let mut state = self.state();
        if let Some(number) = state.claims.get(&claim) {
            return (state.tokens[*number], false);
        }
        let number = (0..).find(|number| state.is_free(*number, queues)).unwrap_or_default();
        if number == state.tokens.len() {
            let token = OwnerToken::random(claim.subscriber());
            state.tokens.push(token);
            state.numbers.insert(token, number);
        }
        state.claims.insert(claim, number);
        state.set(number, queues, Used::By(claim));
        (state.tokens[number], true)
    }

    /// Notes that the claim has no entries, and no request that could still make some.
    pub(super) fn is_removed(&self, claim: OwnerToken, queues: &[String]) {
        let mut state = self.state();
        if let Some(number) = state.claims.remove(&claim) {
            state.set(number, queues, Used::No);
        }
    }

    /// Notes that the claim's name is that of another entry. The claim gets a new name, and no
    /// claim gets this one again.
    pub(super) fn is_taken(&self, claim: OwnerToken, queues: &[String]) {
        let mut state = self.state();
        if let Some(number) = state.claims.remove(&claim) {
            state.set(number, queues, Used::ByUnknown);
        }
    }

    /// Puts the tokens of this store's claims into the entries of this lease in place of those in
    /// their names.
    pub(super) fn put_claims(&self, queue: &str, lease: i64, entries: &mut [Entry]) {
        let state = self.state();
        let Some(used) = state.used.get(queue) else { return };
        for entry in entries.iter_mut().filter(|entry| names::lease(entry) == Some(lease)) {
            let number = state.numbers.get(&entry.token);
            if let Some(Used::By(claim)) = number.and_then(|number| used.get(*number)) {
                entry.token = *claim;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl State {
    fn is_free(&self, number: usize, queues: &[String]) -> bool {
        queues.iter().all(|queue| {
            let used = self.used.get(queue.as_str()).and_then(|used| used.get(number));
            used.is_none_or(|used| *used == Used::No)
        })
    }

    fn set(&mut self, number: usize, queues: &[String], by: Used) {
        for queue in queues {
            let used = self.used.entry(queue.as_str().into()).or_default();
            if used.len() <= number {
                used.resize(number + 1, Used::No);
            }
            used[number] = by;
            while used.pop_if(|last| *last == Used::No).is_some() {}
            if used.is_empty() {
                self.used.remove(queue.as_str());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Sharing;

    fn queues(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_name_is_used_again_and_never_by_two() {
        let names = EntryNames::default();
        let claim = || OwnerToken::random(1);
        let (one, other, both) = (claim(), claim(), claim());
        let (a, ab) = (queues(&["a/"]), queues(&["a/", "b/"]));
        let (first, _) = names.of(one, &a);
        assert_eq!(names.of(one, &a), (first, false));
        let (second, is_new) = names.of(both, &ab);
        assert!(is_new && second != first);
        assert_eq!(names.of(other, &queues(&["b/"])), (first, true));
        names.is_removed(one, &a);
        let (again, next) = (claim(), claim());
        assert_eq!(names.of(again, &a), (first, true));
        names.is_taken(again, &a);
        assert!(![first, second].contains(&names.of(again, &a).0));
        names.is_removed(both, &ab);
        assert_eq!(names.of(next, &a), (second, true));
    }

    #[test]
    fn nothing_is_kept_of_a_claim_that_is_removed() {
        let names = EntryNames::default();
        for _ in 0..3 {
            let claims: Vec<_> = (0..3).map(|_| OwnerToken::random(1)).collect();
            claims.iter().for_each(|claim| _ = names.of(*claim, &queues(&["a/"])));
            claims.iter().for_each(|claim| names.is_removed(*claim, &queues(&["a/"])));
        }
        let state = names.state();
        assert!(state.used.is_empty() && state.claims.is_empty());
        assert_eq!(state.tokens.len(), 3);
    }

    #[test]
    fn only_entries_of_this_session_are_read_as_those_of_its_claims() {
        let given = EntryNames::default();
        let claim = OwnerToken::random(1);
        let (token, _) = given.of(claim, &queues(&["a/"]));
        let entry = |lease| {
            let name = names::entry_name(token, Sharing::Exclusive, false, lease);
            let id = ["a/", &name].concat().into();
            Entry { sequence: 1, token, sharing: Sharing::Exclusive, several: false, id }
        };
        let mut entries = [entry(7), entry(8)];
        given.put_claims("b/", 7, &mut entries);
        assert_eq!([entries[0].token, entries[1].token], [token, token]);
        given.put_claims("a/", 7, &mut entries);
        assert_eq!([entries[0].token, entries[1].token], [claim, token]);
    }
}
