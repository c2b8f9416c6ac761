//! `node share url=… callers=50`: for each key on stdin, all callers ask for one shared result at once, and then it says
//! `waits`. The body of any of them ends at the next line. Then it says how many ran the body, and the values that they
//! got.

use std::error::Error;
use std::future::poll_fn;
use std::io::Write;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;

use lockattr::{LockManager, LockOptions};
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin, stdin};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::arguments::Arguments;

pub(crate) async fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let url: String = arguments.get_or("url", String::new())?;
    let callers = arguments.get_or("callers", 50)?;
    let manager = LockManager::connect(&url).await?;
    say("ready")?;
    let mut lines = BufReader::new(stdin()).lines();
    while let Some(key) = lines.next_line().await? {
        say(&flight(&manager, &key, callers, &mut lines).await?)?;
    }
    manager.shutdown().await;
    Ok(())
}

/// One crowd: how many of it ran the body, and what all of them got.
async fn flight(
    manager: &LockManager,
    key: &str,
    callers: u32,
    lines: &mut Lines<BufReader<Stdin>>,
) -> Result<String, Box<dyn Error>> {
    let (runs, mut calls) = (Arc::new(AtomicU32::new(0)), JoinSet::new());
    let (begun, ends) = (Arc::new(Semaphore::new(0)), watch::Sender::new(false));
    for caller in 0..callers {
        let (manager, key, runs) = (manager.clone(), key.to_owned(), runs.clone());
        let (begun, mut ends) = (begun.clone(), ends.subscribe());
        calls.spawn(async move {
            let computes = async |_: &lockattr::Lease| {
                runs.fetch_add(1, Ordering::Relaxed);
                ends.wait_for(|ends| *ends).await.ok();
                // Longer than what most replies of a store contain, and not ASCII.
                let long = "\u{e9}".repeat(10_000);
                Ok::<_, String>(format!("{} {caller}|{long}", std::process::id()))
            };
            let call = manager.with_shared_result(key, LockOptions::new(), computes);
            let mut call = pin!(call);
            let now = poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await;
            begun.add_permits(1);
            match now {
                Poll::Ready(got) => got,
                Poll::Pending => call.await,
            }
        });
    }
    begun.acquire_many(callers).await?.forget();
    say("waits")?;
    lines.next_line().await?;
    ends.send_replace(true);
    let mut values = Vec::new();
    while let Some(got) = calls.join_next().await {
        values.push(got???.split('|').next().unwrap_or_default().to_owned());
    }
    values.sort();
    values.dedup();
    Ok(format!("{};{}", runs.load(Ordering::Relaxed), values.join(",")))
}

fn say(line: &str) -> std::io::Result<()> {
    writeln!(std::io::stdout(), "{line}")
}
