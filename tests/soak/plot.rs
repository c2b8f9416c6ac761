//! Situations that random faults seldom produce, played in the quiet phase: a process that only
//! waits is killed, stopped or cut off while another process waits for the same lock; many callers
//! give up at once; a caller is dropped while the lock is handed to it; a holder forks. None of
//! this may cost the others more than the lease of the process that is gone.

mod leave;

use std::time::Duration;

use lockattr::{Error, LockManager, LockOptions};
use lockattr_tests::{Node, Wires};
use tokio::time::{Instant, sleep, timeout};

use crate::chance::stream;
use crate::crowd::{ALIVE, CrowdOutcome, Sharing};
use crate::forked::OVER;
use crate::topology::Topology;
use crate::workers::Faults;
use leave::waiters_leave;

/// What a busy machine may add to that lease.
const SLACK: Duration = Duration::from_secs(6);

/// The wait of the callers that must get in.
const PATIENT: Duration = Duration::from_secs(60);

/// How many callers give up at once.
const CROWD: usize = 5000;

/// The locks of the crowd, of the caller that is dropped, and of the process that forks.
const CROWDED: &str = "plot:c";
const HANDED: &str = "plot:d";

const FORKED: &str = "plot:e";

/// How long the lock would stay taken for a caller that is dropped.
const AT_LEAST: Duration = Duration::from_secs(20);

/// Plays all plots that this topology supports. Returns their counts and the failures.
pub(crate) async fn play<T: Topology>(engine: &T, seed: u64) -> (Faults, Vec<String>) {
    let mut random = stream(seed, "plot");
    let (mut faults, mut found) = (Faults::new(), Vec::new());
    let mut played = |name: String, finding: Option<String>| {
        *faults.entry(name).or_default() += 1;
        found.extend(finding);
    };
    let (way, finding) = waiters_leave(engine, &mut random).await;
    played(format!("Waiters{way:?}"), finding);
    if T::ALL_MODES {
        played("Crowd".to_owned(), a_crowd_gives_up(engine).await);
    }
    played("CallerDropped".to_owned(), a_caller_is_dropped(engine).await);
    played("Forked".to_owned(), a_holder_forks(engine).await);
    clear_up(engine).await;
    (faults, found)
}

/// A table keeps the row of a lease that has ended until the next request, also for a crowd that
/// was killed at that moment.
async fn clear_up<T: Topology>(engine: &T) {
    let manager = manager(engine);
    if let Ok(last) = manager.acquire(ALIVE, LockOptions::new().wait(PATIENT)).await {
        last.release().await.ok();
    }
    manager.shutdown().await;
}

/// The longest time for which a live process may have to wait for a lock.
fn bound<T: Topology>() -> Duration {
    T::GIVES_UP_WITHIN + SLACK
}

fn settings<T: Topology>() -> String {
    format!("{}&{}{}", T::SHORT, T::QUICK, T::SETTINGS)
}

fn manager<T: Topology>(engine: &T) -> LockManager {
    let url = engine.url_with(&settings::<T>());
    LockManager::builder().url(url).build().expect("its own URL")
}

/// Starts this program with another verb.
fn start(verb: &str, words: &[(&str, String)]) -> Node {
    let program = std::env::current_exe().expect("this program has a path");
    Node::start(&program.to_string_lossy(), verb, words)
}

async fn crowd<T: Topology>(
    wires: &Wires,
    (keys, sharing): (&[&str], Sharing),
    tasks: usize,
    wait: Duration,
) -> Node {
    let words = [
        ("url", wires.url_with(&settings::<T>())),
        ("keys", keys.join(",")),
        ("sharing", sharing.word().to_string()),
        ("tasks", tasks.to_string()),
        ("wait", wait.as_millis().to_string()),
    ];
    let mut node = start("crowd", &words);
    assert_eq!(node.line().await, "ready");
    node.say("wait").await;
    assert_eq!(node.line().await, "waiting");
    // Time for its requests to arrive.
    sleep(Duration::from_millis(500)).await;
    node
}

async fn a_crowd_gives_up<T: Topology>(engine: &T) -> Option<String> {
    let holder = manager(engine);
    let held = holder.acquire(CROWDED, LockOptions::new()).await;
    let Ok(held) = held else { return Some(format!("in peace, {CROWDED}: {held:?}")) };
    let wires = Wires::before(engine).await;
    let alone = (&[CROWDED][..], Sharing::Alone);
    let mut node = crowd::<T>(&wires, alone, CROWD, Duration::from_secs(3)).await;
    let said = node.line_within(PATIENT).await;
    // It may still be busy with its crowd.
    node.kill();
    held.release().await.ok();
    holder.shutdown().await;
    let outcome = said.as_deref().and_then(CrowdOutcome::read);
    let all = CrowdOutcome { contended: CROWD, ..CrowdOutcome::default() };
    (outcome.as_ref() != Some(&all)).then(|| {
        format!(
            "{CROWD} callers give up at once, the lock is held, the server is healthy: {said:?}"
        )
    })
}

/// Two futures ask in one task, and the second is dropped when the first is done.
async fn a_caller_is_dropped<T: Topology>(engine: &T) -> Option<String> {
    let (here, other) = (manager(engine), manager(engine));
    let works = here.with_lock(HANDED, LockOptions::new(), async |_| {
        sleep(Duration::from_millis(300)).await;
    });
    let options = LockOptions::new().wait(PATIENT).hold_at_least(AT_LEAST);
    let ran = tokio::select! {
        biased;
        worked = works => worked.map(|()| false),
        second = here.acquire(HANDED, options) => second.map(|_| true),
    };
    let began = Instant::now();
    let waits = other.acquire(HANDED, LockOptions::new().wait(PATIENT));
    let finding = match timeout(bound::<T>(), waits).await {
        // Some stores refuse so long a lease.
        _ if matches!(ran, Err(Error::InvalidOptions(_))) => None,
        _ if !matches!(ran, Ok(false)) => Some(format!("in peace, {HANDED}: {ran:?}")),
        Ok(Ok(guard)) => {
            guard.release().await.ok();
            None
        }
        Ok(Err(error @ Error::Contended { .. })) => Some(error.to_string()),
        Ok(Err(error)) => Some(format!("in peace, {HANDED}: {error}")),
        Err(_) => Some(format!("it is not free after {:?}", began.elapsed())),
    };
    here.shutdown().await;
    other.shutdown().await;
    finding.map(|what| format!("a caller is dropped whose body never ran: {what}"))
}

/// A process holds a lock and forks: the child does not hold the lock, and does not release it.
async fn a_holder_forks<T: Topology>(engine: &T) -> Option<String> {
    let words = [("url", engine.url_with(&settings::<T>())), ("key", FORKED.to_owned())];
    let mut node = start("fork", &words);
    let mut wrong = Vec::new();
    let said_all = loop {
        match node.line_within(PATIENT).await {
            Some(line) if line == OVER => break true,
            Some(line) => wrong.push(line),
            None => break false,
        }
    };
    if !said_all {
        wrong.push("it ended or hangs before it was over".to_owned());
        node.kill();
    }
    (!wrong.is_empty()).then(|| format!("in peace, a holder forks: {}", wrong.join("; ")))
}
