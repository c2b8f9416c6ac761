//! Which locks the store refused of late. A caller whose own request brings no answer reports what another caller of
//! this process learned about the same lock, and nothing that anyone learned about another one.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::Instant;

use crate::Holder;
use crate::platform::sync::Mutex;
use crate::store::{Claim, LockKey, Sharing};

/// How many refusals are remembered at least.
const REMEMBERED: usize = 1024;

/// The last refusal of each lock, of the newest so many locks.
#[derive(Default)]
pub(super) struct Refusals {
    generations: Mutex<Generations>,
    /// Whether there was any, so that a lock which is free costs no search.
    any: AtomicBool,
}

#[derive(Default)]
struct Generations {
    newer: Refused,
    /// As many as are remembered, until the newer ones are.
    older: Refused,
}

/// By the keys and the mode, because a refusal in another mode may have another reason.
type Refused = HashMap<(Arc<[LockKey]>, Sharing), (Instant, Option<Box<Holder>>)>;

impl Refusals {
    /// The store has refused this claim, because of this holder.
    pub(super) fn learned(&self, claim: &Claim, holder: Option<Box<Holder>>) {
        let refused = (of(claim), (Instant::now(), holder));
        let mut generations = self.generations.lock();
        self.any.store(true, Ordering::Relaxed);
        if generations.newer.len() >= REMEMBERED {
            generations.older = std::mem::take(&mut generations.newer);
        }
        generations.newer.insert(refused.0, refused.1);
    }

    /// This claim has the lock, so what was learned before is over.
    pub(super) fn forget(&self, claim: &Claim) {
        if self.any.load(Ordering::Relaxed) {
            let (granted, mut generations) = (of(claim), self.generations.lock());
            generations.newer.remove(&granted);
            generations.older.remove(&granted);
        }
    }

    /// Whether a claim of this process was refused the same locks at `since` or later, and because of
    /// which holder.
    pub(super) fn since(&self, claim: &Claim, since: Instant) -> Option<Option<Box<Holder>>> {
        let (refused, generations) = (of(claim), self.generations.lock());
        let both = [&generations.newer, &generations.older];
        let (at, holder) = both.into_iter().find_map(|known| known.get(&refused))?;
        (*at >= since).then(|| holder.clone())
    }
}

fn of(claim: &Claim) -> (Arc<[LockKey]>, Sharing) {
    (claim.shared_keys().clone(), claim.sharing())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;
    use crate::store::Subscriber;

    fn claim(keys: &[&str], sharing: Sharing) -> Claim {
        let mut keys = keys.iter().map(|key| LockKey::new("lock:", key).unwrap());
        let first = keys.next().unwrap();
        Claim::of(&Subscriber::new(|_| {}), first, keys, sharing, "")
    }

    /// Red without: the mode in `of`, the comparison with `since`, or `forget`.
    #[tokio::test(start_paused = true)]
    async fn a_refusal_says_nothing_about_other_keys_other_modes_or_later_times() {
        let (refusals, asked) = (Refusals::default(), Instant::now());
        refusals.learned(&claim(&["a", "b"], Sharing::Shared), None);
        let is_known =
            |keys: &[&str], sharing, since| refusals.since(&claim(keys, sharing), since).is_some();
        assert!(is_known(&["b", "a"], Sharing::Shared, asked));
        for keys in [&["a"][..], &["b"], &["a", "b", "c"]] {
            assert!(!is_known(keys, Sharing::Shared, asked), "{keys:?}");
        }
        for sharing in [Sharing::Exclusive, Sharing::Permits(2)] {
            assert!(!is_known(&["a", "b"], sharing, asked), "{sharing:?}");
        }
        advance(Duration::from_millis(1)).await;
        assert!(!is_known(&["a", "b"], Sharing::Shared, Instant::now()));
        refusals.forget(&claim(&["b", "a"], Sharing::Shared));
        assert!(!is_known(&["a", "b"], Sharing::Shared, asked), "this process has had it since");
    }

    /// Red without: `older`, or its replacement.
    #[tokio::test(start_paused = true)]
    async fn the_newest_refusals_are_remembered_and_not_all() {
        let (refusals, asked) = (Refusals::default(), Instant::now());
        let nth = |nth: usize| claim(&[&nth.to_string()], Sharing::Exclusive);
        (0..3 * REMEMBERED).for_each(|it| refusals.learned(&nth(it), None));
        let known = |it: &usize| refusals.since(&nth(*it), asked).is_some();
        assert_eq!((0..3 * REMEMBERED).filter(known).count(), 2 * REMEMBERED);
        assert!((2 * REMEMBERED..3 * REMEMBERED).all(|it| known(&it)));
    }
}
