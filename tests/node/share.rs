//! `node share url=… callers=50 body=200`: for each line on stdin, all callers ask for one shared result at
//! once. Prints how many ran the body, the values that they got, and how long the slowest took.

use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lockattr::{LockManager, LockOptions};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::arguments::Arguments;

pub(crate) async fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let url: String = arguments.get_or("url", String::new())?;
    let callers = arguments.get_or("callers", 50)?;
    let body = Duration::from_millis(arguments.get_or("body", 200)?);
    let manager = LockManager::connect(&url).await?;
    say("ready")?;
    let mut lines = BufReader::new(stdin()).lines();
    while let Some(key) = lines.next_line().await? {
        say(&flight(&manager, &key, callers, body).await?)?;
    }
    manager.shutdown().await;
    Ok(())
}

/// One crowd: how many of it ran the body, and what all of them got.
async fn flight(
    manager: &LockManager,
    key: &str,
    callers: u32,
    body: Duration,
) -> Result<String, Box<dyn Error>> {
    let (runs, mut calls) = (Arc::new(AtomicU32::new(0)), JoinSet::new());
    for caller in 0..callers {
        let (manager, key, runs) = (manager.clone(), key.to_owned(), runs.clone());
        calls.spawn(async move {
            let began = Instant::now();
            let options = LockOptions::new().wait(Duration::from_secs(60));
            let computes = async |_: &lockattr::Lease| {
                runs.fetch_add(1, Ordering::Relaxed);
                sleep(body).await;
                // Longer than what most replies of a store contain, and not ASCII.
                let long = "\u{e9}".repeat(10_000);
                Ok::<_, String>(format!("{} {caller}|{long}", std::process::id()))
            };
            let got = manager.with_shared_result(key, options, computes).await;
            (got, began.elapsed())
        });
    }
    let (mut values, mut times) = (Vec::new(), Vec::new());
    while let Some(call) = calls.join_next().await {
        let (got, time) = call?;
        values.push(got??.split('|').next().unwrap_or_default().to_owned());
        times.push(time);
    }
    values.sort();
    values.dedup();
    times.sort();
    let p99 = times[(times.len() * 99).div_ceil(100) - 1];
    let runs = runs.load(Ordering::Relaxed);
    Ok(format!("{runs};{};{}", values.join(","), p99.as_micros()))
}

fn say(line: &str) -> std::io::Result<()> {
    writeln!(std::io::stdout(), "{line}")
}
