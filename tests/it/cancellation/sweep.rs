//! Drops a future at each of its await points, in every nemesis, and checks what is left.

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

/// A future that is not woken for this long never ends.
const HORIZON: Duration = LEASE.saturating_mul(2);

/// More polls than any future here needs.
const MOST: usize = 100;

/// Sets up the state before the future is first polled, and creates the future.
type SetUp = fn(World) -> Pin<Box<dyn Future<Output = Case>>>;

/// A future to sweep, with its expected counts.
#[derive(Clone, Copy)]
pub(super) struct Scenario {
    pub(super) name: &'static str,
    set_up: SetUp,
    /// Its result when it is not dropped, as a word.
    ends: &'static str,
    /// How often it waits when every command gets its reply: its await points.
    pub(super) points: usize,
    /// How often it was dropped, over all nemeses.
    pub(super) drops: usize,
}

/// Where a future is dropped: after this many polls, immediately or when it is woken for the next.
#[derive(Clone, Copy, Debug)]
struct Point {
    polls: usize,
    woken: bool,
}

/// How a future ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Dropped,
    /// Dropped because nothing woke it any more.
    Stuck,
    /// Completed with this result, as a word.
    Completed(&'static str),
}

impl Scenario {
    pub(super) const fn of(name: &'static str, set_up: SetUp) -> Self {
        Self { name, set_up, ends: "", points: 0, drops: 0 }
    }

    /// Sets the expected result and counts.
    pub(super) const fn ends(self, ends: &'static str, points: usize, drops: usize) -> Self {
        Self { ends, points, drops, ..self }
    }

    /// Sweeps the future in every nemesis.
    #[track_caller]
    pub(super) fn sweep(&self) {
        let (mut drops, calm) = self.sweep_calm();
        // One more command is sent after the end, or in place of a dropped one.
        let commands = calm.last().unwrap() + 1;
        for nemesis in Nemesis::troubles(commands) {
            drops += self.sweep_in(nemesis, &calm);
        }
        // A future that is never polled is a point to drop at, but not an await point.
        let counted = (calm.len() - 2, drops);
        assert_eq!(counted, (self.points, self.drops), "points and drops: {}", self.name);
    }

    /// Sweeps the future while every command gets its reply. Returns how often it was dropped, and
    /// how many commands each poll sent.
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

    /// Sweeps the future in a trouble. Returns how often it was dropped. `calm` holds the commands
    /// sent by each poll without trouble.
    fn sweep_in(&self, trouble: Nemesis, calm: &[usize]) -> usize {
        // Drops before the trouble reaches any command, even one sent at the drop, repeat the calm
        // sweep.
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

    /// Creates a new world, drops the future at `point`, and checks what is left. Also returns how
    /// many commands were sent before.
    fn drop_at(&self, point: Point, nemesis: Nemesis) -> (End, usize) {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build().unwrap();
        // On a paused clock a hang takes no real time.
        let run = async { timeout(3600 * LEASE, self.run(point, nemesis)).await.expect("a hang") };
        let run = AssertUnwindSafe(|| runtime.block_on(run));
        catch_unwind(run).unwrap_or_else(|_| {
            panic!("{}: dropped at {point:?} in {nemesis:?}", self.name);
        })
    }

    async fn run(&self, point: Point, nemesis: Nemesis) -> (End, usize) {
        let world = World::new();
        let Case { mut future, survivor, other } = (self.set_up)(world.clone()).await;
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
        Aftermath { world: world.clone(), nemesis, survivor, other, polled, began }.check().await;
        // Everything owed is settled before the runtime ends; otherwise a thread would have to do
        // it.
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
