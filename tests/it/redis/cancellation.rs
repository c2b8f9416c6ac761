//! Every public future that sends a request to a real Redis, dropped at each of its await points:
//! while all requests are answered, and while one is kept on its way there or back.

use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use lockattr::{Error, Lease, LockManager, LockOptions, Release, distributed_lock};
use lockattr_tests::{Fault, Proxy, RedisServer, assert_nothing_left, eventually, with_query};
use tokio::task::yield_now;
use tokio::time::sleep;

/// Longer than any test: a lock that is free was released, and did not expire.
const TTL: Duration = Duration::from_secs(3_600);

/// A future that is not woken for so long is stuck. A shorter time would only drop it earlier.
const STUCK: Duration = Duration::from_millis(150);

type Swept = Pin<Box<dyn Future<Output = Result<(), Error>>>>;

type SetUp = fn(LockManager) -> Swept;

/// The command that is kept on its way, and how.
type Kept = Option<(&'static str, Fault)>;

struct World {
    server: RedisServer,
    proxy: Proxy,
    manager: LockManager,
}

/// How a future ended.
#[derive(PartialEq)]
enum End {
    Dropped,
    Stuck,
    Completed,
}

impl World {
    async fn new() -> Self {
        let server = RedisServer::start().await;
        let proxy = Proxy::start(server.addr()).await;
        let url = with_query(&server.url_through(&proxy), "connections=1");
        let manager = LockManager::connect(&url).await.unwrap();
        Self { server, proxy, manager }
    }

    /// Drops the futures that `set_up` makes after one poll, after two, and so on, until they
    /// complete or are stuck, and checks each time what is left. Returns the number of drops.
    async fn sweep(&self, kept: Kept, set_up: SetUp) -> usize {
        for polls in 1.. {
            if let Some((command, fault)) = &kept {
                self.proxy.always(command, fault.clone());
            }
            let mut future = set_up(self.manager.clone());
            let end = poll_until(future.as_mut(), polls, self.is_kept(kept.as_ref())).await;
            let before = self.commands().len();
            drop(future);
            // Requests that were kept on their way arrive now; replies may do so as well.
            self.proxy.pass();
            assert_nothing_left(&self.server).await;
            let after = self.commands().split_off(before);
            // The request just sent is one round trip; the release is the second. If the request
            // just sent was a release, the second one finds no entry, and a third one reads why.
            let limit = if after.first().is_some_and(|sent| sent == "release") { 3 } else { 2 };
            assert!(after.len() <= limit, "{after:?} after {polls} polls");
            self.next_gets_in().await;
            if end != End::Dropped {
                return polls;
            }
        }
        unreachable!("it is polled forever");
    }

    /// Returns when the next such command was kept on its way, and its future is stuck.
    async fn is_kept(&self, kept: Option<&(&str, Fault)>) {
        let Some((command, _)) = kept else { return pending().await };
        let before = self.proxy.seen(command);
        eventually("it is kept", async || self.proxy.seen(command) > before).await;
        sleep(STUCK).await;
    }

    /// The commands for locks so far.
    fn commands(&self) -> Vec<String> {
        let mut log = self.proxy.log();
        log.retain(|command| ["acquire", "renew", "release"].contains(&command.as_str()));
        log
    }

    async fn next_gets_in(&self) {
        let next = self.manager.try_acquire("a", LockOptions::new().ttl(TTL)).await.unwrap();
        next.expect("the next caller cannot acquire").release().await.unwrap();
    }
}

async fn poll_until(
    mut future: Pin<&mut dyn Future<Output = Result<(), Error>>>,
    polls: usize,
    is_kept: impl Future<Output = ()>,
) -> End {
    let mut done = 0;
    let polling = poll_fn(|context| {
        done += 1;
        match future.as_mut().poll(context) {
            Poll::Ready(result) => {
                result.unwrap();
                Poll::Ready(End::Completed)
            }
            Poll::Pending if done == polls => Poll::Ready(End::Dropped),
            Poll::Pending => Poll::Pending,
        }
    });
    tokio::select! {
        end = polling => end,
        () = is_kept => End::Stuck,
    }
}

fn options() -> LockOptions {
    LockOptions::new().ttl(TTL)
}

async fn body(_: &Lease) {
    yield_now().await;
    yield_now().await;
}

#[distributed_lock(key = "a", ttl = "1h", manager = &manager)]
async fn annotated(manager: LockManager) -> Result<(), Error> {
    yield_now().await;
    nested(manager).await
}

#[distributed_lock(key = "a", manager = &manager)]
async fn nested(manager: LockManager) -> Result<(), Error> {
    yield_now().await;
    Ok(())
}

struct Scenario {
    name: &'static str,
    set_up: SetUp,
    /// The commands that are kept on their way, one after the other.
    kept: &'static [&'static str],
}

const fn of(name: &'static str, kept: &'static [&'static str], set_up: SetUp) -> Scenario {
    Scenario { name, set_up, kept }
}

const FUTURES: &[Scenario] = &[
    of("acquire", &["acquire"], |m| {
        Box::pin(async move { m.acquire("a", options()).await.map(drop) })
    }),
    of("try_acquire", &["acquire"], |m| {
        Box::pin(async move { m.try_acquire("a", options()).await.map(drop) })
    }),
    of("acquire, extend, release", &["acquire", "renew", "release"], |m| {
        Box::pin(async move {
            let guard = m.acquire("a", options()).await?;
            guard.extend(2 * TTL).await?;
            guard.release().await
        })
    }),
    of("with_lock", &["acquire", "release"], |m| {
        Box::pin(async move { m.with_lock("a", options(), body).await })
    }),
    of("with_lock, released in the background", &["acquire", "release"], |m| {
        let options = options().release(Release::Background);
        Box::pin(async move { m.with_lock("a", options, body).await })
    }),
    of("acquire, waiting for another", &["acquire", "release"], |m| {
        Box::pin(async move {
            let held = m.acquire("a", options()).await?;
            let brief = options().retry(2).retry_delay(Duration::from_millis(1));
            let refused = m.acquire("a", brief).await;
            assert!(matches!(refused, Err(Error::Contended { .. })), "{refused:?}");
            held.release().await
        })
    }),
    of("an annotated function with a nested call", &["acquire", "release"], |m| {
        Box::pin(annotated(m))
    }),
    of("holder", &["holder"], |m| Box::pin(async move { m.holder("a").await.map(drop) })),
];

#[tokio::test]
#[expect(clippy::print_stdout, reason = "a table to read, with `--nocapture`")]
async fn a_call_dropped_at_any_point_is_released_within_two_round_trips() {
    let world = World::new().await;
    let mut points = 0;
    for Scenario { name, set_up, kept } in FUTURES {
        let mut here = world.sweep(None, *set_up).await;
        for &command in *kept {
            for fault in [Fault::HoldRequest, Fault::HoldReply] {
                here += world.sweep(Some((command, fault)), *set_up).await;
            }
        }
        println!("{here:>4} points  {name}");
        points += here;
    }
    println!("{points:>4} points  in all");
    // Fewer points would mean that futures were not swept; the exact number depends on the network.
    assert!(points >= 60, "{points} points");
}

/// A future that only borrows its guard does not end the hold.
///
/// Red without: nothing; it shows that the sweep above does not pass because everything is released
/// at once.
#[tokio::test]
async fn a_dropped_extend_leaves_its_hold_alone() {
    let world = World::new().await;
    for fault in [Fault::HoldRequest, Fault::HoldReply] {
        let guard = world.manager.acquire("a", options()).await.unwrap();
        world.proxy.always("renew", fault);
        let mut extend = Box::pin(guard.extend(2 * TTL));
        let is_kept = world.is_kept(Some(&("renew", Fault::HoldReply)));
        assert!(poll_until(extend.as_mut(), usize::MAX, is_kept).await == End::Stuck);
        drop(extend);
        world.proxy.pass();
        guard.ensure_held().unwrap();
        let answered = async || world.proxy.answered("renew") > 0;
        eventually("the server granted it", answered).await;
        guard.release().await.unwrap();
        assert_nothing_left(&world.server).await;
    }
}
