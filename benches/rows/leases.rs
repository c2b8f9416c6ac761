//! The cost of holding ten thousand leases, and of dropping them all at once.

mod bare;
mod gauge;

use std::process::Stdio;
use std::time::Duration;

use bare::{Bare, Pace};
use futures_util::future::join_all;
use gauge::{Cost, Counted, allocated, resident, scripts};
use lockattr::store::RedisStore;
use lockattr::{LockGuard, LockManager, LockOptions};
use lockattr_tests::{RedisServer, bare};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::runtime::Handle;
use tokio::time::{Instant, interval, sleep};

use crate::report::{Bar, Report};

const LEASES: usize = 10_000;

/// The manager's default, and the fraction of it after which leases are renewed.
const TTL: Duration = Duration::from_secs(10);
const RENEWED_AFTER: Duration = TTL.checked_div(3).unwrap();

/// How the leases are acquired. Each way has its own process, because the memory of one would
/// remain for the next.
const ARRIVALS: [&str; 2] = ["at-once", "spread"];

/// The prefix of a line with a figure, in the output of that process.
const FIGURE: &str = "figure";

/// Starts this program for each way, and prints its output. Each lease is renewed at least three
/// times.
pub(super) async fn compare(report: &mut Report, time: Duration) {
    report.row("leases", "ten thousand, held");
    let seconds = time.max(TTL).as_secs_f64().to_string();
    for arrival in ARRIVALS {
        let program = std::env::current_exe().expect("a path to ourselves");
        let mut command = Command::new(program);
        command.args(["leases", arrival, "--seconds", &seconds]);
        command.stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("started once more");
        let mut lines = BufReader::new(child.stdout.take().expect("stdout is a pipe")).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let fields: Vec<&str> = line.split('\t').collect();
            match fields[..] {
                [FIGURE, what, value, unit, bar] => {
                    let number = |text: &str| text.parse().expect("a number that we printed");
                    let what = format!("{arrival}: {what}");
                    report.bar(&what, number(value), unit, Bar::AtMost(number(bar)));
                }
                _ => report.note(&line),
            }
        }
        let status = child.wait().await.expect("our own child can be awaited");
        if !status.success() {
            report.note(&format!("{arrival}: {status}"));
        }
    }
}

/// Measures one way, in the process that [`compare`] has started for it.
pub(crate) async fn measure(arrival: &str, time: Duration) {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let store = Counted::new(RedisStore::open(&bare(&server.url())).expect("a good URL"));
    let manager = LockManager::builder().store(store.clone()).build().expect("good settings");
    // Creates the connections and the watchdog before the measurement.
    for n in 0..100 {
        drop(manager.acquire(format!("warm:{n}"), LockOptions::new()).await);
    }
    until_keys(&cli, 1).await;
    let tasks = Handle::current().metrics().num_alive_tasks();

    println!("{LEASES} leases of {TTL:?}, acquired {arrival}, held for {time:?}");
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
    figure("leases that were lost", (LEASES - held) as f64, "", 0.0);
    row("tasks, before and while held", &format!("{tasks}, {held_by}"), "");
    figure("tasks more than before the first", held_by.saturating_sub(tasks) as f64, "", 0.0);
    figure("CPU, of one core", leases.percent(), "%", 5.0);
    figure("batches (scripts) a second", scripts as f64 / seconds, "", 50.0);
    row("renewals a second", &format!("{:.0}", renewals as f64 / seconds), "");
    row("times a second that some were sent", &format!("{:.1}", ticks as f64 / seconds), "");
    row("leases in a batch", &format!("{:.1}", renewals as f64 / scripts as f64), "");
    for (when, now) in [("when acquired", acquired), ("after the time", after)] {
        figure(&format!("allocated for a lease, {when}"), per_lease(before.0, now.0), "B", 1024.0);
        let resident = per_lease(before.1, now.1);
        row(&format!("resident for a lease, {when}"), &format!("{resident:.0} B"), "");
    }

    let keys = guards.iter().map(|guard| format!("lock:{}", guard.key())).collect();
    let mut noted = Bare::note(&bare(&server.url()), keys, TTL).await.expect("the values");
    let started = Instant::now();
    drop(guards);
    let let_go = started.elapsed();
    until_keys(&cli, 1).await;
    let gone = started.elapsed();
    row("dropped all: the drops took", &format!("{let_go:.1?}"), "");
    figure("dropped all: gone from the server", gone.as_secs_f64() * 1e3, "ms", 1000.0);

    noted.set().await.expect("set");
    let pace = Pace {
        every: time / u32::try_from(ticks).expect("fewer"),
        renewals: (renewals / ticks) as usize,
        in_one_script: (renewals / scripts).max(1) as usize,
    };
    beside("the same script by hand", leases, noted.renew_by_script(pace, time).await);
    beside("bare PEXPIRE by hand", leases, noted.renew_by_pexpire(pace, time).await);
    let deleted = noted.delete().await.expect("deleted");
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

/// Evenly over the time between two renewals, so that the renewals are even too.
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

/// Waits until the server has at most `count` keys.
async fn until_keys(cli: &lockattr_tests::Cli, count: usize) {
    while cli.query::<usize>(&["DBSIZE"]).await > count {
        sleep(Duration::from_millis(1)).await;
    }
}

fn per_lease(before: usize, after: usize) -> f64 {
    after.saturating_sub(before) as f64 / LEASES as f64
}

fn beside(what: &str, leases: Cost, bare: Cost) {
    let ratio = leases.percent() / bare.percent();
    let value = format!("{:.2} %", bare.percent());
    row(&format!("CPU, of one core: {what}"), &value, &format!("ratio {ratio:.2}"));
}

fn row(what: &str, value: &str, beside: &str) {
    println!("{what:<44}{value:>12}   {beside}");
}

/// Prints a figure with a bar, for the report.
fn figure(what: &str, value: f64, unit: &str, at_most: f64) {
    println!("{FIGURE}\t{what}\t{value}\t{unit}\t{at_most}");
}
