//! What it costs to hold ten thousand leases for a minute, and to drop them all at once.
//!
//! ```text
//! cargo bench -p lockattr-benches --bench leases
//! cargo bench -p lockattr-benches --bench leases -- --seconds 10
//! ```
#![allow(clippy::print_stdout, reason = "a program that talks to a person")]

mod bare;
mod gauge;

use std::process::Command;
use std::time::Duration;

use bare::{Bare, Pace};
use futures_util::future::join_all;
use gauge::{Cost, Counted, allocated, resident, scripts};
use lockattr::store::RedisStore;
use lockattr::{LockGuard, LockManager, LockOptions};
use lockattr_tests::RedisServer;
use tokio::runtime::Handle;
use tokio::time::{Instant, interval, sleep};

/// One that tells how much it has given out.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const LEASES: usize = 10_000;

/// The manager's default, and by what part of it leases are renewed.
const TTL: Duration = Duration::from_secs(10);
const RENEWED_AFTER: Duration = TTL.checked_div(3).unwrap();

/// How the leases are acquired. Each is measured in a process of its own: the memory of one would
/// be there for the next.
const ARRIVALS: [&str; 2] = ["at-once", "spread"];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let after = |name| words.iter().skip_while(|word| *word != name).nth(1);
    let seconds = after("--seconds").map_or(60, |seconds| seconds.parse().expect("a number"));
    if let Some(arrival) = after("--arrival") {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        return runtime.block_on(measure(arrival, Duration::from_secs(seconds)));
    }
    for arrival in ARRIVALS {
        let program = std::env::current_exe().expect("a path to ourselves");
        let words = ["--arrival", arrival, "--seconds", &seconds.to_string()];
        let status = Command::new(program).args(words).status().expect("started once more");
        assert!(status.success(), "{arrival}: {status}");
    }
}

async fn measure(arrival: &str, time: Duration) {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let store = Counted::new(RedisStore::open(&server.url()).expect("a good URL"));
    let manager = LockManager::builder().store(store.clone()).build().expect("good settings");
    // The connections and the watchdog are there before anything is counted.
    for n in 0..100 {
        drop(manager.acquire(format!("warm:{n}"), LockOptions::new()).await);
    }
    until_keys(&cli, 1).await;
    let tasks = Handle::current().metrics().num_alive_tasks();

    println!("\n{LEASES} leases of {TTL:?}, acquired {arrival}, held for {time:?}");
    let mut guards = Vec::with_capacity(LEASES);
    let before = (allocated(), resident());
    let started = Instant::now();
    match arrival {
        "spread" => acquire_spread(&manager, &mut guards).await,
        _ => acquire_at_once(&manager, &mut guards).await,
    }
    row("acquired within", &format!("{:.2?}", started.elapsed()), "");
    let acquired = (allocated(), resident());
    let held_by = Handle::current().metrics().num_alive_tasks();

    let ((ticks, renewals), scripts_before) = (store.counts(), scripts(&cli).await);
    let leases = Cost::of(sleep(time)).await;
    let (ticks, renewals) = (store.counts().0 - ticks, store.counts().1 - renewals);
    let scripts = scripts(&cli).await - scripts_before;
    let after = (allocated(), resident());
    let held = guards.iter().filter(|guard| guard.ensure_held().is_ok()).count();
    let seconds = leases.time.as_secs_f64();
    row("still held", &held.to_string(), "all");
    row("tasks, before and while held", &format!("{tasks}, {held_by}"), "one task");
    row("CPU, of one core", &format!("{:.2} %", leases.percent()), "5 %");
    row("batches (scripts) a second", &format!("{:.1}", scripts as f64 / seconds), "50");
    row("renewals a second", &format!("{:.0}", renewals as f64 / seconds), "");
    row("times a second that some were sent", &format!("{:.1}", ticks as f64 / seconds), "");
    row("leases in a batch", &format!("{:.1}", renewals as f64 / scripts as f64), "");
    for (when, now) in [("when acquired", acquired), ("after the time", after)] {
        row(&format!("allocated for a lease, {when}"), &per_lease(before.0, now.0), "1024 B");
        row(&format!("resident for a lease, {when}"), &per_lease(before.1, now.1), "");
    }

    let keys = guards.iter().map(|guard| format!("lock:{}", guard.key())).collect();
    let mut bare = Bare::note(&server.url(), keys, TTL).await.expect("the values");
    let started = Instant::now();
    drop(guards);
    let let_go = started.elapsed();
    until_keys(&cli, 1).await;
    let gone = started.elapsed();
    row("dropped all: the drops took", &format!("{let_go:.1?}"), "");
    row("dropped all: gone from the server", &format!("{gone:.1?}"), "1 s");

    bare.set().await.expect("set");
    let pace = Pace {
        every: time / u32::try_from(ticks).expect("fewer"),
        renewals: (renewals / ticks) as usize,
        in_one_script: (renewals / scripts).max(1) as usize,
    };
    beside("the same script by hand", leases, bare.renew_by_script(pace, time).await);
    beside("bare PEXPIRE by hand", leases, bare.renew_by_pexpire(pace, time).await);
    let deleted = bare.delete().await.expect("deleted");
    let ratio = gone.as_secs_f64() / deleted.as_secs_f64();
    row("bare DEL of all in one pipeline", &format!("{deleted:.1?}"), &format!("ratio {ratio:.2}"));
}

async fn acquire(manager: &LockManager, n: usize) -> LockGuard {
    let guard = manager.acquire(format!("product:{n}"), LockOptions::new()).await;
    guard.expect("free, and the server answers")
}

/// As fast as one task can, a hundred at a time.
async fn acquire_at_once(manager: &LockManager, guards: &mut Vec<LockGuard>) {
    while guards.len() < LEASES {
        let from = guards.len();
        guards.extend(join_all((from..from + 100).map(|n| acquire(manager, n))).await);
    }
}

/// Evenly over the time between two renewals: then so are these.
async fn acquire_spread(manager: &LockManager, guards: &mut Vec<LockGuard>) {
    let started = Instant::now();
    let mut pause = interval(Duration::from_millis(1));
    while guards.len() < LEASES {
        pause.tick().await;
        let part = started.elapsed().as_secs_f64() / RENEWED_AFTER.as_secs_f64();
        let until = LEASES.min((part * LEASES as f64) as usize);
        guards.extend(join_all((guards.len()..until).map(|n| acquire(manager, n))).await);
    }
}

/// Waits for the server to have no more than so many keys.
async fn until_keys(cli: &lockattr_tests::Cli, count: usize) {
    while cli.query::<usize>(&["DBSIZE"]).await > count {
        sleep(Duration::from_millis(1)).await;
    }
}

fn per_lease(before: usize, after: usize) -> String {
    format!("{} B", after.saturating_sub(before) / LEASES)
}

fn beside(what: &str, leases: Cost, bare: Cost) {
    let ratio = leases.percent() / bare.percent();
    let value = format!("{:.2} %", bare.percent());
    row(&format!("CPU, of one core: {what}"), &value, &format!("ratio {ratio:.2}"));
}

fn row(what: &str, value: &str, bar: &str) {
    println!("  {what:<44}{value:>12}   {bar}");
}
