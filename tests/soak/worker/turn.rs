//! The work of one turn, drawn before the turn begins.

use std::time::Duration;

use lockattr::{LockOptions, Mode, OnLost, Release};
use lockattr_history::Mode as Shared;
use rand::RngExt;
use rand::rngs::StdRng;

use super::{KEYS, PERMITS, SEMAPHORE};
use crate::chance::{millis, one_of};

/// One acquisition and the work under it.
#[derive(Debug)]
pub(super) struct Turn {
    /// Indexes into [`KEYS`], each at most once.
    pub(super) keys: Vec<usize>,
    pub(super) mode: Shared,
    pub(super) options: LockOptions,
    /// The longest wait that the options allow.
    pub(super) max_wait: Duration,
    pub(super) way: Way,
    pub(super) operations: Vec<Operation>,
    /// When the caller drops all of it, if it does.
    pub(super) dropped_after: Option<Duration>,
    /// The pause after the turn.
    pub(super) rest: Duration,
}

/// How the lock is acquired and released.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Way {
    Released,
    Dropped,
    /// A guard from a single attempt.
    Tried,
    Body,
}

/// One operation under the lock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operation {
    /// What the lock guards: an entry in each key's shelf, or a look at it.
    Guarded(Duration),
    /// The same in a nested, reentrant call.
    Nested(Duration),
    Extended(Duration),
    /// The body works on, and may outlive its lease.
    Worked(Duration),
    /// The same, without yielding the thread.
    Blocked(Duration),
    Panicked,
}

impl Turn {
    pub(super) fn drawn(random: &mut StdRng, all_modes: bool) -> Self {
        let mut keys = vec![random.random_range(0..SEMAPHORE)];
        let mut mode = Shared::Exclusive;
        match random.random_range(0..100) {
            0..15 if all_modes => mode = Shared::Shared,
            15..25 if all_modes => (keys, mode) = (vec![SEMAPHORE], Shared::Permits(PERMITS)),
            25..35 if all_modes => keys = several(random),
            _ => {}
        }
        let way = match random.random_range(0..10) {
            0..4 => Way::Released,
            4 => Way::Dropped,
            5 => Way::Tried,
            _ => Way::Body,
        };
        // `try` and a body take one key only.
        let way = if keys.len() > 1 && !matches!(way, Way::Dropped) { Way::Released } else { way };
        let (mut options, mut max_wait) = options(random, mode);
        if way == Way::Tried {
            max_wait = Duration::ZERO;
        }
        let dropped_after = random.random_ratio(1, 12).then(|| millis(random, 0..400));
        let mut operations: Vec<Operation> =
            (0..random.random_range(1..4)).map(|_| operation(random)).collect();
        if random.random_ratio(1, 25) {
            // It outlives a lease that no process renews, and would go on.
            let ttl = millis(random, 100..400);
            options = options.ttl(ttl).renew(false).on_lost(OnLost::Ignore);
            operations.insert(0, Operation::Worked(ttl + millis(random, 0..400)));
            operations.push(Operation::Guarded(millis(random, 0..4)));
        }
        Self {
            keys,
            mode,
            options,
            max_wait,
            way,
            operations,
            dropped_after,
            rest: millis(random, 0..20),
        }
    }

    /// The names of the operations.
    pub(super) fn names(&self) -> Vec<&'static str> {
        self.keys.iter().map(|&key| KEYS[key]).collect()
    }
}

/// Two or three of the exclusive keys, in any order.
fn several(random: &mut StdRng) -> Vec<usize> {
    let mut keys: Vec<usize> = (0..SEMAPHORE).collect();
    keys.rotate_left(random.random_range(0..SEMAPHORE));
    if random.random_bool(0.5) {
        keys.reverse();
    }
    keys.truncate(random.random_range(2..=3));
    keys
}

fn options(random: &mut StdRng, mode: Shared) -> (LockOptions, Duration) {
    let mut options = match mode {
        Shared::Exclusive => LockOptions::new(),
        Shared::Shared => LockOptions::new().mode(Mode::Shared),
        Shared::Permits(permits) => LockOptions::new().permits(permits),
    };
    let max_wait = match random.random_range(0..6) {
        0 => Duration::ZERO,
        1 => millis(random, 10..300),
        2 => {
            let (retries, delay) = (random.random_range(1..20), millis(random, 1..100));
            options = options.retry(retries).retry_delay(delay);
            delay * retries
        }
        _ => millis(random, 500..4000),
    };
    if !(max_wait.is_zero() && random.random_bool(0.5)) {
        options = options.wait(max_wait);
    } else {
        options = options.retry(0);
    }
    // With a wait of zero, a retry would never happen.
    match random.random_range(0..8) {
        0 => options = options.ttl(millis(random, 200..1500)).renew(false),
        1 => options = options.ttl(millis(random, 300..2000)),
        2 => options = options.max_hold(millis(random, 2000..3000)).ttl(millis(random, 500..2000)),
        3 => options = options.hold_at_least(millis(random, 5..100)),
        _ => {}
    }
    options = options.on_lost(one_of(random, &[OnLost::Cancel, OnLost::Error, OnLost::Ignore]));
    if random.random_ratio(1, 3) {
        options = options.release(Release::Background);
    }
    (options, max_wait)
}

fn operation(random: &mut StdRng) -> Operation {
    match random.random_range(0..100) {
        0..64 => Operation::Guarded(millis(random, 0..4)),
        64..76 => Operation::Nested(millis(random, 0..4)),
        76..84 => Operation::Extended(millis(random, 500..2000)),
        84..95 => Operation::Worked(millis(random, 0..20)),
        95 => Operation::Worked(millis(random, 200..1200)),
        96 => Operation::Blocked(millis(random, 1..300)),
        97 => Operation::Panicked,
        _ => Operation::Guarded(millis(random, 20..200)),
    }
}

#[cfg(test)]
mod tests {
    use lockattr::Error;

    use super::*;
    use crate::chance::stream;

    fn drawn(seed: u64) -> Vec<Turn> {
        let mut random = stream(seed, "task 0");
        (0..2000).map(|_| Turn::drawn(&mut random, true)).collect()
    }

    #[test]
    fn the_same_seed_has_the_same_turns() {
        assert_eq!(format!("{:?}", drawn(3)), format!("{:?}", drawn(3)));
        assert_ne!(format!("{:?}", drawn(3)), format!("{:?}", drawn(4)));
    }

    /// A turn with invalid options would do nothing at all.
    #[tokio::test(start_paused = true)]
    async fn every_turn_is_accepted_by_a_manager() {
        let manager = lockattr::LockManager::connect("memory://?ttl=2s").await.unwrap();
        for turn in drawn(5) {
            match manager.acquire_all(turn.names(), turn.options.clone()).await {
                Ok(guard) => guard.release().await.unwrap(),
                // The previous holder keeps the lock for `hold_at_least`.
                Err(error) => {
                    assert!(matches!(error, Error::Contended { .. }), "{turn:?}: {error}");
                }
            }
        }
    }

    #[test]
    fn every_kind_of_turn_occurs() {
        let turns = drawn(6);
        let any = |is: fn(&Turn) -> bool| turns.iter().any(is);
        assert!(any(|turn| turn.mode == Shared::Shared));
        assert!(any(|turn| turn.mode == Shared::Permits(PERMITS)));
        assert!(any(|turn| turn.keys.len() == 2) && any(|turn| turn.keys.len() == 3));
        assert!(any(|turn| turn.dropped_after.is_some()));
        assert!(any(|turn| turn.max_wait.is_zero()));
        for way in [Way::Released, Way::Dropped, Way::Tried, Way::Body] {
            assert!(turns.iter().any(|turn| turn.way == way), "{way:?}");
        }
        for operation in ["Guarded", "Nested", "Extended", "Worked", "Blocked", "Panicked"] {
            assert!(format!("{turns:?}").contains(operation), "{operation}");
        }
    }

    #[test]
    fn an_engine_with_exclusive_locks_only_gets_no_other_turns() {
        let mut random = stream(1, "task 0");
        for _ in 0..500 {
            let turn = Turn::drawn(&mut random, false);
            assert_eq!((turn.keys.len(), turn.mode), (1, Shared::Exclusive));
        }
    }
}
