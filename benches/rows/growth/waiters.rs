//! Many waiters on one key, each with its own entry in the server's queue.
//!
//! Each is a manager with one task. A server sees a manager as a process: it has a subscription, a
//! channel and an entry of its own. But all of them are in this process and share the few
//! connections of one store, because ten thousand processes would not fit on the machine. The row
//! measures the server and the requests to it, which do not depend on shared connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use lockattr::store::RedisStore;
use lockattr::{Error, LockGuard, LockManager, LockOptions};
use lockattr_tests::{Cli, RedisServer, bare};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::commands::{Monitor, server_cpu};
use crate::spread::Spread;

const KEY: &str = "growth";

/// Long enough for all waiters before it.
const WAIT: Duration = Duration::from_secs(300);

/// The number of waiters that join at a time. If all joined at once, some would time out.
const AT_A_TIME: usize = 250;

/// How long all may take to join, or to acquire once more and leave.
const WAIT_LIMIT: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(5);

/// The number of windows, of which the median counts: a disturbance spoils one of them.
const WINDOWS: u32 = 5;

/// The time before it counts.
const RUN_IN: Duration = Duration::from_millis(100);

/// All managers that compete for the key; one of them holds it.
pub(super) struct Crowd<'a> {
    server: &'a RedisServer,
    tasks: JoinSet<Result<(), Error>>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    acquired: AtomicU64,
    /// Holders that have released do not ask again.
    ends: AtomicBool,
}

/// The cost of one acquisition; `rate` is acquisitions per second.
pub(super) struct Cost {
    pub(super) rate: f64,
    /// The server's CPU time in microseconds.
    pub(super) server: f64,
    pub(super) commands: f64,
    pub(super) calls: f64,
}

impl<'a> Crowd<'a> {
    /// Returns when `waiting` managers wait, one holds the lock, and they have begun to take turns.
    pub(super) async fn gather(server: &'a RedisServer, waiting: usize) -> Self {
        let store = Arc::new(RedisStore::open(&bare(&server.url())).expect("a good URL"));
        let manager = || LockManager::builder().store(store.clone()).wait(WAIT).build();
        let cli = server.cli().await;
        let mut crowd = Self { server, tasks: JoinSet::new(), shared: Arc::default() };
        let first = manager().expect("good settings");
        let held = first.acquire(KEY, LockOptions::new()).await.expect("no other caller");
        while crowd.tasks.len() < waiting {
            for _ in 0..AT_A_TIME.min(waiting - crowd.tasks.len()) {
                let manager = manager().expect("good settings");
                crowd.tasks.spawn(take_turns(manager, None, crowd.shared.clone()));
            }
            until_queued(&cli, crowd.tasks.len()).await;
        }
        crowd.tasks.spawn(take_turns(first, Some(held), crowd.shared.clone()));
        sleep(RUN_IN).await;
        crowd
    }

    /// Measures the time for `time`, in several windows, and after that counts commands for a
    /// while.
    pub(super) async fn measure(&self, time: Duration) -> Cost {
        let cli = self.server.cli().await;
        let (mut rates, mut servers) = (Vec::new(), Vec::new());
        for _ in 0..WINDOWS {
            let (began, before, from) = (Instant::now(), server_cpu(&cli).await, self.acquired());
            sleep(time / WINDOWS).await;
            let acquired = (self.acquired() - from) as f64;
            let (took, server) = (began.elapsed(), server_cpu(&cli).await - before);
            rates.push(acquired / took.as_secs_f64());
            servers.push(server.as_secs_f64() * 1e6 / acquired);
        }
        let (monitor, from) = (Monitor::begin(self.server).await, self.acquired());
        sleep(time / 2).await;
        let counted = (self.acquired() - from) as f64;
        let asked = monitor.end().await;
        let middle = |values| Spread::of(values).expect("there are windows").median;
        Cost {
            rate: middle(rates),
            server: middle(servers),
            commands: asked.sent as f64 / counted,
            calls: asked.called as f64 / counted,
        }
    }

    fn acquired(&self) -> u64 {
        self.shared.acquired.load(Ordering::Relaxed)
    }

    /// Each acquires once more and leaves, because leftovers would disturb the next measurement.
    pub(super) async fn leave(mut self) -> Result<(), String> {
        self.shared.ends.store(true, Ordering::Relaxed);
        let all = async {
            while let Some(ended) = self.tasks.join_next().await {
                ended.expect("no panic").map_err(|error| error.to_string())?;
            }
            Ok(())
        };
        let left = timeout(WAIT_LIMIT, all).await;
        left.unwrap_or_else(|_| Err(format!("some had no turn for {WAIT_LIMIT:?}")))
    }
}

/// Acquires and releases the lock until the crowd ends, beginning with `held`.
async fn take_turns(
    manager: LockManager,
    mut held: Option<LockGuard>,
    shared: Arc<Shared>,
) -> Result<(), Error> {
    loop {
        let guard = match held.take() {
            Some(guard) => guard,
            None => manager.acquire(KEY, LockOptions::new()).await?,
        };
        shared.acquired.fetch_add(1, Ordering::Relaxed);
        guard.release().await?;
        if shared.ends.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
}

/// Returns when the queue has `count` entries. It is the only sorted set on the server.
async fn until_queued(cli: &Cli, count: usize) {
    let since = Instant::now();
    loop {
        let words = ["SCAN", "0", "COUNT", "1000000", "TYPE", "zset"];
        let (_, queues): (String, Vec<String>) = cli.query(&words).await;
        let mut queued = 0;
        for queue in queues {
            queued = queued.max(cli.query::<usize>(&["ZCARD", &queue]).await);
        }
        if queued >= count {
            return;
        }
        assert!(since.elapsed() < WAIT_LIMIT, "{queued} of {count} were queued");
        sleep(PAUSE).await;
    }
}
