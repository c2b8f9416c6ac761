//! Which claims use which session: an index, so that no search reads the claims of other sessions.

use std::collections::{BTreeMap, HashMap, HashSet};

use tokio::time::Instant;

use crate::store::{Claim, LockKey, OwnerToken};

/// The claims of all sessions, by the number of the session.
#[derive(Default)]
pub(super) struct OnSessions {
    sessions: HashMap<u64, OnSession>,
}

/// The claims of one session.
#[derive(Default)]
struct OnSession {
    /// The names that are held or requested. A session can take a lock that it holds again, so two
    /// claims for one name must use different sessions.
    names: HashMap<String, OwnerToken>,
    /// The claims that hold their locks, by the end of their lease.
    ends: BTreeMap<(Instant, u128), OwnerToken>,
}

impl OnSessions {
    /// Enters a claim, with the end of its lease if it holds its locks.
    pub(super) fn enter(&mut self, session: u64, claim: &Claim, ends: Option<Instant>) {
        let token = claim.token();
        let on = self.sessions.entry(session).or_default();
        for key in claim.keys() {
            on.names.insert(key.name().to_owned(), token);
        }
        if let Some(ends) = ends {
            on.ends.insert((ends, token.order()), token);
        }
    }

    /// Removes a claim that was entered with this end.
    pub(super) fn leave(&mut self, session: u64, claim: &Claim, ends: Option<Instant>) {
        let Some(on) = self.sessions.get_mut(&session) else { return };
        for key in claim.keys() {
            on.names.remove(key.name());
        }
        if let Some(ends) = ends {
            on.ends.remove(&(ends, claim.token().order()));
        }
        if on.names.is_empty() {
            self.sessions.remove(&session);
        }
    }

    /// The lease of a claim ends at another instant.
    pub(super) fn move_end(&mut self, session: u64, token: OwnerToken, from: Instant, to: Instant) {
        let Some(on) = self.sessions.get_mut(&session) else { return };
        if on.ends.remove(&(from, token.order())).is_some() {
            on.ends.insert((to, token.order()), token);
        }
    }

    /// A claim that uses one of the names of `claim` on this session.
    pub(super) fn user(&self, session: u64, claim: &Claim) -> Option<OwnerToken> {
        let names = &self.sessions.get(&session)?.names;
        claim.keys().iter().map(LockKey::name).find_map(|name| names.get(name)).copied()
    }

    /// The claims that use this name, on any session.
    pub(super) fn users_of(&self, name: &str) -> impl Iterator<Item = OwnerToken> {
        self.sessions.values().filter_map(move |on| on.names.get(name).copied())
    }

    /// The claims of this session.
    pub(super) fn all_on(&self, session: u64) -> HashSet<OwnerToken> {
        let names = self.sessions.get(&session).map(|on| on.names.values().copied());
        names.into_iter().flatten().collect()
    }

    /// The claim on this session whose lease ends first.
    pub(super) fn first_end(&self, session: u64) -> Option<(Instant, OwnerToken)> {
        let (&(ends, _), &token) = self.sessions.get(&session)?.ends.first_key_value()?;
        Some((ends, token))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::Sharing;

    fn claim(nth: u128, key: &str, more: &[&str]) -> Claim {
        let name = |key: &str| LockKey::new("lock:", key).unwrap();
        let subscriber = crate::store::Subscriber::new(|_name| {});
        let more = more.iter().map(|key| name(key));
        Claim::of(&subscriber, name(&format!("{key}{nth}")), more, Sharing::Exclusive, "")
    }

    /// A search reads what it returns: 10,000 claims cost one read each and not 10,000 each.
    ///
    /// Red without: `all_on`, `first_end` or `user` by session.
    #[test]
    fn the_end_of_a_session_reads_its_own_claims_once() {
        let (mut index, now) = (OnSessions::default(), Instant::now());
        let claims: Vec<_> = (0..10_000).map(|nth| claim(nth, "a", &[])).collect();
        let session = |nth: usize| u64::try_from(nth % 4).unwrap();
        for (nth, claim) in claims.iter().enumerate() {
            let end = now + Duration::from_millis(u64::try_from(nth).unwrap());
            index.enter(session(nth), claim, Some(end));
        }
        assert_eq!(index.all_on(1).len(), 2_500);
        let mut reads = 0;
        while let Some((end, token)) = index.first_end(1) {
            reads += 1;
            let claim = claims.iter().find(|claim| claim.token() == token).unwrap();
            index.leave(1, claim, Some(end));
        }
        assert_eq!(reads, 2_500, "one for each claim of this session, in the order of their ends");
        assert!(index.all_on(1).is_empty() && !index.sessions.contains_key(&1));
    }

    /// Red without: any of the removals in `leave`.
    #[test]
    fn a_claim_that_left_is_in_no_search() {
        let (mut index, now) = (OnSessions::default(), Instant::now());
        let (one, other) = (claim(0, "a", &["b", "c"]), claim(0, "x", &["c"]));
        index.enter(7, &one, Some(now));
        assert_eq!(index.user(7, &other), Some(one.token()), "both name `c`");
        assert_eq!(index.user(8, &other), None, "on another session");
        assert_eq!(index.users_of("lock:c").collect::<Vec<_>>(), [one.token()]);
        index.enter(8, &other, None);
        assert_eq!(index.users_of("lock:c").count(), 2);
        assert_eq!((index.first_end(7), index.first_end(8)), (Some((now, one.token())), None));
        let later = now + Duration::from_secs(1);
        index.move_end(7, one.token(), now, later);
        assert_eq!(index.first_end(7), Some((later, one.token())));
        index.leave(7, &one, Some(later));
        assert_eq!((index.user(7, &other), index.first_end(7)), (None, None));
        index.leave(8, &other, None);
        assert!(index.sessions.is_empty());
    }
}
