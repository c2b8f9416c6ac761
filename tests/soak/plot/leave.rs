//! A process that only waits is killed, stopped or cut off while another waits for the same lock.

use std::time::Duration;

use lockattr_tests::Wires;
use rand::RngExt;
use rand::rngs::StdRng;
use tokio::time::{Instant, sleep};

use super::{PATIENT, bound, crowd, manager};
use crate::chance::one_of;
use crate::crowd::Sharing;
use crate::nemesis::Trouble;
use crate::topology::Topology;

/// The number of waiters in the process that leaves. Each would cost a lease if the store still
/// served it.
const WAITERS: usize = 15;

const BOTH: [&str; 2] = ["plot:a", "plot:b"];

/// The lock of the holder, of the waiters behind it, and of the waiter behind those.
#[derive(Clone, Copy, Debug)]
struct Locks {
    held: (&'static [&'static str], Sharing),
    left: (&'static [&'static str], Sharing),
    waited: (&'static [&'static str], Sharing),
    /// Whether the holder stays: the last waiter could share the lock with it.
    stays: bool,
}

const ALONE: Locks = {
    let a = (&["plot:a"] as &[_], Sharing::Alone);
    Locks { held: a, left: a, waited: a, stays: false }
};

const PERMITS: Locks = {
    let a = (&["plot:a"] as &[_], Sharing::Permits(1));
    Locks { held: a, left: a, waited: a, stays: false }
};

const SHARED: Locks = {
    let shared = (&["plot:a"] as &[_], Sharing::Shared);
    Locks { held: shared, left: (&["plot:a"], Sharing::Alone), waited: shared, stays: true }
};

const SEVERAL: Locks = Locks {
    held: (&["plot:b"], Sharing::Alone),
    left: (&BOTH, Sharing::Alone),
    waited: (&["plot:a"], Sharing::Alone),
    stays: true,
};

/// The cases in which leaving waiters could cost others the most.
const LEAVING: &[(Trouble, Locks)] = &[
    (Trouble::Killed, SHARED),
    (Trouble::Killed, SEVERAL),
    (Trouble::Stopped, ALONE),
    (Trouble::Stopped, PERMITS),
    (Trouble::Stopped, SEVERAL),
    (Trouble::AllSwallowed, PERMITS),
    (Trouble::AllSwallowed, SHARED),
];

/// Plays it once. Returns how the waiters left, and the cost if it was too high.
pub(super) async fn waiters_leave<T: Topology>(
    engine: &T,
    random: &mut StdRng,
) -> (Trouble, Option<String>) {
    let (mut way, mut locks) = one_of(random, LEAVING);
    if !T::TROUBLES.contains(&way) {
        way = Trouble::Stopped;
    }
    if !T::ENTRIES_END {
        (way, locks) = (Trouble::Killed, ALONE);
    }
    if !T::ALL_MODES {
        locks = ALONE;
    }
    let is_cut = way == Trouble::AllSwallowed;
    // Waiters that are cut off time out meanwhile, and cannot tell the store.
    let wait = if is_cut { Duration::from_millis(1_500) } else { PATIENT };
    let first = random.random_bool(0.5);
    let (holder, other) = (manager(engine), manager(engine));
    let held = holder.acquire_all(locks.held.0, locks.held.1.options()).await;
    let Ok(held) = held else {
        return (way, Some(format!("in peace, {:?}: {held:?}", locks.held)));
    };
    // A holder that stays holds until the end of the plot.
    let mut held = Some(held);
    let wires = Wires::before(engine).await;
    let mut node = crowd::<T>(&wires, locks.left, WAITERS, wait).await;
    let options = locks.waited.1.options().wait(PATIENT);
    let waits = async {
        let waited = other.acquire_all(locks.waited.0, options).await;
        (waited, Instant::now())
    };
    let goes = async {
        if !first {
            // The other process waits already when they leave.
            sleep(Duration::from_millis(300)).await;
        }
        match way {
            Trouble::Killed => node.kill(),
            Trouble::Stopped => node.stop_signal(),
            _ => {
                wires.swallow();
                sleep(wait + Duration::from_secs(3)).await;
                wires.pass().await;
                // It has a connection again, and its server may notify it of a grant.
                sleep(Duration::from_secs(2)).await;
            }
        }
        let gone = Instant::now();
        if let Some(held) = held.take_if(|_| !locks.stays) {
            held.release().await.ok();
        }
        gone
    };
    let ((waited, at), gone) = tokio::join!(waits, goes);
    if way == Trouble::Stopped {
        node.continue_signal();
    }
    if way != Trouble::Killed {
        node.kill();
    }
    let took = at.saturating_duration_since(gone);
    let fine = waited.as_ref().is_ok_and(|_| took <= bound::<T>());
    let finding = (!fine).then(|| {
        let answer = waited.as_ref().map(|_| "the lock").map_err(ToString::to_string);
        format!(
            "{way:?}, with {WAITERS} waiters of {locks:?}: the next has {answer:?} after {took:?}"
        )
    });
    drop((waited, held));
    other.shutdown().await;
    holder.shutdown().await;
    (way, finding)
}
