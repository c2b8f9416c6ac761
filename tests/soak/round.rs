//! One round on one topology: servers, processes, faults, a quiet phase, and the verdict.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::join_all;
use lockattr::{LockManager, LockOptions};
use lockattr_tests::Engine;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::nemesis::attacks;
use crate::outcome::{Complaint, Complaints, Outcome};
use crate::plan::Plan;
use crate::plot;
use crate::topology::Topology;
use crate::verdict;
use crate::worker::{KEYS, LEADER, PERMITS, SEMAPHORE};
use crate::workers::{Faults, Member};

/// What a busy machine may add to a promised limit.
const SLACK: Duration = Duration::from_secs(10);

pub(crate) async fn run<T: Topology>(name: &'static str, plan: &Plan, seed: u64) -> Outcome {
    let directory = directory(plan, name, seed);
    let engine = T::start().await;
    let place = |nth| Member::start(&engine, nth, seed, directory.clone());
    let mut workers = join_all((0..plan.workers).map(place)).await;

    let began = Instant::now();
    let until = began + plan.nemesis();
    let servers = run_server_nemesis(&engine, seed, until);
    let (servers, processes) =
        tokio::join!(servers, join_all(workers.iter_mut().map(|member| member.run_nemesis(until))));
    let seconds = began.elapsed().as_secs_f64();

    let mut wrong = Vec::new();
    let settled = join_all(workers.iter_mut().map(Member::settle)).await;
    wrong.extend(settled.into_iter().filter_map(Result::err));
    let ended = join_all(workers.iter_mut().map(Member::finish)).await;
    wrong.extend(ended.into_iter().filter_map(Result::err));
    let mut hung = new_client_acquires_all(&engine).await;
    let (plots, mut costs) = plot::play(&engine, seed).await;
    let (leaked, outlived) = left(&engine).await;

    let mut verdict = verdict::of(&directory);
    for (process, complaint) in Complaints::read(&directory) {
        let (list, text) = match complaint {
            Complaint::Violation(text) => (&mut verdict.violations, text),
            Complaint::Hung(text) => (&mut hung, text),
            Complaint::Wrong(text) => (&mut wrong, text),
        };
        list.push(format!("process {process}: {text}"));
    }
    if verdict.operations.acquired == 0 {
        wrong.push("no worker held any lock in the whole round".into());
    }
    if verdict.operations.terms == 0 {
        wrong.push("no worker led in the whole round".into());
    }
    let mut faults = Faults::new();
    for (kind, count) in processes.into_iter().chain([servers, plots]).flatten() {
        *faults.entry(kind).or_default() += count;
    }
    verdict.violations.append(&mut costs);
    let (operations, violations) = (verdict.operations, verdict.violations);
    let outcome = Outcome {
        topology: name,
        seed,
        seconds,
        operations,
        faults,
        violations,
        leaked,
        outlived,
        hung,
        wrong,
        history: None,
        replay: None,
    };
    keep_failed(outcome, plan, &directory)
}

/// Injects one server fault after the other; at the end all faults are repaired.
async fn run_server_nemesis<T: Topology>(engine: &T, seed: u64, until: Instant) -> Faults {
    let mut faults = Faults::new();
    for attack in attacks(seed, "servers", T::HARMS) {
        if Instant::now() + attack.after >= until {
            break;
        }
        sleep(attack.after).await;
        *faults.entry(format!("{:?}", attack.kind)).or_default() += 1;
        engine.suffer(attack).await;
    }
    sleep_until(until).await;
    faults
}

/// A new client must be able to acquire every lock that no process holds any more. That also
/// removes grants to processes that are gone.
async fn new_client_acquires_all<T: Topology>(engine: &T) -> Vec<String> {
    let limit = T::GIVES_UP_WITHIN + SLACK;
    let url = engine.url_with(&format!("{}&{}{}", T::SHORT, T::QUICK, T::SETTINGS));
    let manager = LockManager::builder().url(url).build().expect("its own URL");
    let mut hung = Vec::new();
    for (nth, key) in KEYS.into_iter().chain([LEADER]).enumerate() {
        if nth == SEMAPHORE && !T::ALL_MODES {
            continue;
        }
        let options = LockOptions::new().wait(limit);
        let options = if nth == SEMAPHORE { options.permits(PERMITS) } else { options };
        let had = async {
            loop {
                match manager.acquire(key, options.clone()).await {
                    Ok(guard) => break guard.release().await.map_err(|error| error.to_string()),
                    Err(lockattr::Error::Store { .. }) => sleep(Duration::from_millis(100)).await,
                    Err(error) => break Err(error.to_string()),
                }
            }
        };
        match timeout(limit + SLACK, had).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                hung.push(format!("after the round `{key}` cannot be acquired: {error}"));
            }
            Err(_) => hung.push(format!("after the round an acquire of `{key}` gets no reply")),
        }
    }
    manager.shutdown().await;
    hung
}

/// What the store still has when all leases are over and a process is connected, and which of that is
/// removed by the queue's own expiry.
async fn left<T: Topology>(engine: &T) -> (Vec<String>, Vec<String>) {
    engine.sweep_is_due().await;
    let _connected = LockManager::connect(engine.url()).await.expect("the servers are well");
    let left = left_after(engine, T::GIVES_UP_WITHIN + SLACK).await;
    let leaked = match left.is_empty() {
        true => Vec::new(),
        false => left_after(engine, T::QUEUE_LASTS).await,
    };
    let outlived = left.into_iter().filter(|line| !leaked.contains(line)).collect();
    (leaked, outlived)
}

async fn left_after(engine: &impl Engine, time: Duration) -> Vec<String> {
    let until = Instant::now() + time;
    loop {
        let left = engine.left().await;
        if left.is_empty() || Instant::now() > until {
            return left;
        }
        sleep(Duration::from_millis(100)).await;
    }
}

fn directory(plan: &Plan, name: &str, seed: u64) -> PathBuf {
    let directory = plan.out.join(format!("{name}-{seed}"));
    // Files from an earlier run of the same round would be judged with this one.
    std::fs::remove_dir_all(&directory).ok();
    std::fs::create_dir_all(&directory).expect("a directory for the history");
    directory.canonicalize().expect("it was just made")
}

/// Keeps the files of a failed round only.
fn keep_failed(mut outcome: Outcome, plan: &Plan, directory: &Path) -> Outcome {
    if outcome.is_clean() {
        std::fs::remove_dir_all(directory).ok();
        return outcome;
    }
    outcome.replay = Some(replay(plan, outcome.topology, outcome.seed));
    let text = serde_json::to_string_pretty(&outcome).expect("plain data");
    std::fs::write(directory.join("outcome.json"), text).ok();
    outcome.history = Some(directory.join("history.jsonl"));
    outcome
}

/// The command that repeats the same faults and the same work.
pub(crate) fn replay(plan: &Plan, topology: &str, seed: u64) -> String {
    format!(
        "cargo xtask soak --seed {seed} --on {topology} --seconds {} --workers {}",
        plan.nemesis().as_secs_f64(),
        plan.workers
    )
}
