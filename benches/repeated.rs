//! Work of some nanoseconds that uses no server: repeated, and timed in short turns.

use std::hint::black_box;
use std::time::Duration;

use lockattr::{Error, LockManager, LockOptions, distributed_lock};
use tokio::time::Instant;

/// Short, so that a disturbance of the machine spoils only one turn of many.
const TURN: Duration = Duration::from_millis(10);

/// How many keys are used in turn: neither always the same one nor always a new one.
const KEYS: u64 = 64;

/// The kinds of work. All use the current default manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Annotated,
    /// What its expansion does, written by hand.
    ByHand,
    /// `with_lock` by the holder of the same key.
    Reentry,
    /// An annotated function, called by the holder of its key.
    AnnotatedReentry,
    /// Four of them, each called by the one before.
    FourInside,
}

impl Work {
    const ALL: [Self; 5] =
        [Self::Annotated, Self::ByHand, Self::Reentry, Self::AnnotatedReentry, Self::FourInside];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Annotated => "annotated",
            Self::ByHand => "by-hand",
            Self::Reentry => "reentry",
            Self::AnnotatedReentry => "annotated-reentry",
            Self::FourInside => "four-inside",
        }
    }

    pub(crate) fn named(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|work| work.name() == name);
        known.ok_or_else(|| format!("no work is called `{name}`"))
    }

    pub(crate) async fn repeat(self, manager: &LockManager, count: u64) -> Result<(), Error> {
        match self {
            Self::Annotated => {
                for id in 0..count {
                    black_box(annotated(black_box(id % KEYS)).await?);
                }
            }
            Self::ByHand => {
                for id in 0..count {
                    black_box(by_hand(manager, black_box(id % KEYS)).await?);
                }
            }
            Self::Reentry => {
                let held = manager.with_lock("reentry", LockOptions::new(), async |_| {
                    for id in 0..count {
                        let options = LockOptions::new();
                        let nested = manager.with_lock("reentry", options, async |_| black_box(id));
                        black_box(nested.await?);
                    }
                    Ok(())
                });
                held.await??;
            }
            Self::AnnotatedReentry => {
                let held = manager.with_lock("reentry", LockOptions::new(), async |_| {
                    for id in 0..count {
                        black_box(nested(black_box(id)).await?);
                    }
                    Ok(())
                });
                held.await??;
            }
            Self::FourInside => {
                let held = manager.with_lock("reentry", LockOptions::new(), async |_| {
                    for id in 0..count {
                        black_box(nested_three_times(black_box(id)).await?);
                    }
                    Ok(())
                });
                held.await??;
            }
        }
        Ok(())
    }

    /// Nanoseconds for one repetition, over some milliseconds.
    async fn turn(self, manager: &LockManager, count: u64) -> Result<f64, Error> {
        let started = Instant::now();
        self.repeat(manager, count).await?;
        Ok(started.elapsed().as_nanos() as f64 / count as f64)
    }
}

/// Repeats each for `time`, in turns ABBA…. Returns the nanoseconds of one repetition for each turn
/// of each.
pub(crate) async fn alternate<const N: usize>(
    works: [Work; N],
    manager: &LockManager,
    time: Duration,
) -> Result<Vec<[f64; N]>, Error> {
    let mut counts = [100; N];
    for (count, work) in counts.iter_mut().zip(works) {
        // The first turns warm up, and determine how many repetitions fill a turn.
        for _ in 0..3 {
            let nanos = work.turn(manager, *count).await?;
            *count = (TURN.as_nanos() as f64 / nanos).max(1.0) as u64;
        }
    }
    let turns = time.as_millis() / TURN.as_millis();
    let mut all = Vec::new();
    for turn in 0..turns {
        let mut nanos = [0.0; N];
        let mut order: [usize; N] = std::array::from_fn(|n| n);
        if turn % 2 == 1 {
            order.reverse();
        }
        for n in order {
            nanos[n] = works[n].turn(manager, counts[n]).await?;
        }
        all.push(nanos);
    }
    Ok(all)
}

#[distributed_lock(key = "product:<id>")]
async fn annotated(id: u64) -> Result<u64, Error> {
    Ok(id)
}

async fn by_hand(manager: &LockManager, id: u64) -> Result<u64, Error> {
    let options = LockOptions::new().function("annotated");
    manager.with_lock(format!("product:{id}"), options, async |_| Ok(id)).await?
}

#[distributed_lock(key = "reentry")]
async fn nested(id: u64) -> Result<u64, Error> {
    Ok(id)
}

#[distributed_lock(key = "reentry")]
async fn nested_once(id: u64) -> Result<u64, Error> {
    nested(id).await
}

#[distributed_lock(key = "reentry")]
async fn nested_twice(id: u64) -> Result<u64, Error> {
    nested_once(id).await
}

#[distributed_lock(key = "reentry")]
async fn nested_three_times(id: u64) -> Result<u64, Error> {
    nested_twice(id).await
}
