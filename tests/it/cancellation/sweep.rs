//! Drops a future at each of its points, in every nemesis, and looks at what is left.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use lockattr::Error;
use tokio::time::{Instant, sleep, timeout};

use super::aftermath::Aftermath;
use super::nemesis::Nemesis;
use super::world::{Case, LEASE, World};

/// A future that no process wakes for so long never ends.
const HORIZON: Duration = LEASE.saturating_mul(2);

/// No future here waits more often.
const MOST: usize = 100;

/// Makes everything that is so before the future is first polled, and the future.
type SetUp = fn(World) -> Pin<Box<dyn Future<Output = Case>>>;

/// A future to sweep, and how much of it there is.
#[derive(Clone, Copy)]
pub(super) struct Scenario {
    pub(super) name: &'static str,
    set_up: SetUp,
    /// How it ends when no process drops it, in a word.
    ends: &'static str,
    /// How often it waits when everything is answered: its points.
    pub(super) points: usize,
    /// How often it was dropped in all weathers.
    pub(super) drops: usize,
}

/// Where a future is dropped: after so many polls, at once or when it is woken for the next.
#[derive(Clone, Copy, Debug)]
struct Point {
    polls: usize,
    woken: bool,
}

/// How a future came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Dropped,
    /// Dropped, because nothing woke it any more.
    Stuck,
    /// With this result, in a word.
    Completed(&'static str),
}

impl Scenario {
    pub(super) const fn of(name: &'static str, set_up: SetUp) -> Self {
        Self { name, set_up, ends: "", points: 0, drops: 0 }
    }

    /// How it ends, and how much there is to sweep.
    pub(super) const fn ends(self, ends: &'static str, points: usize, drops: usize) -> Self {
        Self { ends, points, drops, ..self }
    }

    /// Sweeps it in every nemesis.
    #[track_caller]
    pub(super) fn sweep(&self) {
        let (mut drops, calm) = self.sweep_calm();
        // One more is sent after the end, or in place of what was dropped.
        let commands = calm.last().unwrap() + 1;
        for nemesis in Nemesis::troubles(commands) {
            drops += self.sweep_in(nemesis, &calm);
        }
        // Not polled at all is a point to drop it at, but not one that it waits at.
        let counted = (calm.len() - 2, drops);
        assert_eq!(counted, (self.points, self.drops), "points and drops: {}", self.name);
    }

    /// Sweeps it while everything is answered: how often it was dropped, and how many commands were
    /// sent by each poll.
    fn sweep_calm(&self) -> (usize, Vec<usize>) {
        let mut sent = Vec::new();
        for polls in 0..MOST {
            let (end, commands) = self.drop_at(Point { polls, woken: false }, Nemesis::Calm);
            sent.push(commands);
            if end != End::Dropped {
                break;
            }
        }
        let waits = sent.len() - 2;
        for polls in 1..=waits {
            let (end, _) = self.drop_at(Point { polls, woken: true }, Nemesis::Calm);
            assert_eq!(end, End::Dropped);
        }
        (1 + 2 * waits, sent)
    }

    /// Sweeps it in a trouble: how often it was dropped. `calm` is what was sent without.
    fn sweep_in(&self, trouble: Nemesis, calm: &[usize]) -> usize {
        // What meets no trouble, not even on its way out, is as if there were none.
        let first = calm.iter().position(|sent| sent + 1 >= trouble.from()).unwrap();
        for polls in first..MOST {
            match self.drop_at(Point { polls, woken: false }, trouble).0 {
                End::Dropped => {}
                End::Stuck => return polls - first + 1,
                End::Completed(_) => return polls - first,
            }
        }
        panic!("{}: never done in {trouble:?}", self.name);
    }

    /// Makes the world anew, drops the future at `point`, and checks what is left. Also tells how
    /// many commands were sent before.
    fn drop_at(&self, point: Point, nemesis: Nemesis) -> (End, usize) {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build().unwrap();
        // On a paused clock a hang takes no time at all.
        let run = async { timeout(3600 * LEASE, self.run(point, nemesis)).await.expect("a hang") };
        let run = AssertUnwindSafe(|| runtime.block_on(run));
        catch_unwind(run).unwrap_or_else(|_| {
            panic!("{}: dropped at {point:?} in {nemesis:?}", self.name);
        })
    }

    async fn run(&self, point: Point, nemesis: Nemesis) -> (End, usize) {
        let world = World::new();
        let Case { mut future, kept, other } = (self.set_up)(world.clone()).await;
        let began = Instant::now();
        world.store.begin(nemesis);
        let end = poll_until(future.as_mut(), point).await;
        if nemesis == Nemesis::Calm && end != End::Dropped {
            assert_eq!(end, End::Completed(self.ends));
        }
        drop(future);
        world.store.dropped();
        let sent = world.store.sent().len();
        let polled = point.polls > 0;
        Aftermath { world: world.clone(), nemesis, kept, other, polled, began }.check().await;
        // All that is owed is settled before the runtime ends, or a thread would have to see to it.
        world.store.begin(Nemesis::Calm);
        sleep(4 * LEASE).await;
        (end, sent)
    }
}

/// Polls `future` as often as `point` says, each time it is woken.
async fn poll_until(
    mut future: Pin<&mut dyn Future<Output = Result<(), Error>>>,
    point: Point,
) -> End {
    let mut polls = 0;
    let polling = poll_fn(|context| {
        if polls == point.polls {
            return Poll::Ready(End::Dropped);
        }
        polls += 1;
        match future.as_mut().poll(context) {
            Poll::Ready(result) => Poll::Ready(End::Completed(word(&result))),
            Poll::Pending if polls == point.polls && !point.woken => Poll::Ready(End::Dropped),
            Poll::Pending => Poll::Pending,
        }
    });
    tokio::select! {
        biased;
        () = sleep(HORIZON) => End::Stuck,
        end = polling => end,
    }
}

fn word(result: &Result<(), Error>) -> &'static str {
    match result {
        Ok(()) => "ok",
        Err(Error::Contended { .. }) => "contended",
        Err(Error::Lost { .. }) => "lost",
        Err(Error::ShutDown { .. }) => "shut down",
        Err(_) => "another error",
    }
}
