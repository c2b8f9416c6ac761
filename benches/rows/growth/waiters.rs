//! Many that want one key, each with an entry of its own in the server's queue.
//!
//! Each is a manager with one task. To the server a manager is a process: it has a subscriber, a channel
//! and an entry of its own. But all of them are in this process and ask through one store, hence
//! over a few connections: ten thousand processes would not fit on the machine. What is measured is
//! the server and what it is asked, which does not depend on who shares a connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use lockattr::store::RedisStore;
use lockattr::{Error, LockGuard, LockManager, LockOptions};
use lockattr_tests::{Cli, RedisServer};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::commands::{Monitor, server_cpu};
use crate::spread::Spread;

const KEY: &str = "growth";

/// No process gives up, however many come before.
const WAIT: Duration = Duration::from_secs(300);

/// So many come at a time: all at once, some of them would not be answered in time.
const AT_A_TIME: usize = 250;

/// For all of them to come, or to have their turns and go.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// The middle of so many windows is taken: a disturbance spoils one of them.
const WINDOWS: u32 = 5;

/// Before it counts.
const RUN_IN: Duration = Duration::from_millis(100);

/// All that want the key, one of which has it.
pub(super) struct Crowd<'a> {
    server: &'a RedisServer,
    tasks: JoinSet<Result<(), Error>>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    acquired: AtomicU64,
    /// Who has had the lock now does not come back.
    ends: AtomicBool,
}

/// What one acquisition takes; of the rate, how many there are in a second.
pub(super) struct Cost {
    pub(super) rate: f64,
    /// Microseconds that the server computes.
    pub(super) server: f64,
    pub(super) commands: f64,
    pub(super) calls: f64,
}

impl<'a> Crowd<'a> {
    /// Returns once so many wait and one has it, and they have begun to take turns.
    pub(super) async fn gather(server: &'a RedisServer, waiting: usize) -> Self {
        let store = Arc::new(RedisStore::open(&server.url()).expect("a good URL"));
        let manager = || LockManager::builder().store(store.clone()).wait(WAIT).build();
        let cli = server.cli().await;
        let mut crowd = Self { server, tasks: JoinSet::new(), shared: Arc::default() };
        let first = manager().expect("good settings");
        let held = first.acquire(KEY, LockOptions::new()).await.expect("nobody else is here");
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

    /// Timed for `time`, in several windows, and after that counted for a while.
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

    /// Each has its turn once more, and goes: what is left over would disturb those who are measured
    /// next.
    pub(super) async fn leave(mut self) -> Result<(), String> {
        self.shared.ends.store(true, Ordering::Relaxed);
        let all = async {
            while let Some(ended) = self.tasks.join_next().await {
                ended.expect("no panic").map_err(|error| error.to_string())?;
            }
            Ok(())
        };
        let left = timeout(PATIENCE, all).await;
        left.unwrap_or_else(|_| Err(format!("some have had no turn for {PATIENCE:?}")))
    }
}

/// Takes the lock and gives it back until the crowd ends, beginning with what it has.
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

/// Returns when the queue has so many entries. It is the only sorted set there, whatever its name.
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
        assert!(since.elapsed() < PATIENCE, "{queued} of {count} came into the queue");
        sleep(PAUSE).await;
    }
}
