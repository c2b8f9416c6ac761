//! One shop full of buyers: a process on Redis, a group of tasks in memory.

use std::error::Error;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::sale::{Outcome, Way, buy};
use crate::shelf::Shelf;
use crate::{BUYERS, SHOPS};

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// A shop that is ready to open.
pub(crate) enum Shop {
    Tasks(Shelf, Way),
    Process(Box<Child>, Lines<BufReader<ChildStdout>>),
}

impl Shop {
    pub(crate) fn open(shelf: &Shelf, way: Way) -> Result<Self, Failure> {
        if matches!(shelf, Shelf::Memory(_)) {
            return Ok(Self::Tasks(shelf.clone(), way));
        }
        let mut child = Command::new(std::env::current_exe()?)
            .arg(way.word())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let lines = BufReader::new(child.stdout.take().ok_or("no pipe from the shop")?).lines();
        Ok(Self::Process(Box::new(child), lines))
    }

    /// Waits until the shop is ready.
    async fn ready(&mut self) -> Result<(), Failure> {
        if let Self::Process(_, lines) = self {
            lines.next_line().await?.ok_or("a shop did not start")?;
        }
        Ok(())
    }

    /// Opens the shop and reports the result of each buyer.
    async fn run(self, outcomes: mpsc::UnboundedSender<Outcome>) -> Result<(), Failure> {
        match self {
            Self::Tasks(shelf, way) => {
                // The receiver is gone only if another shop failed; that error is reported.
                crowd(&shelf, way, |outcome| _ = outcomes.send(outcome)).await
            }
            Self::Process(mut child, mut lines) => {
                child.stdin.take().ok_or("no pipe to the shop")?.write_all(b"open\n").await?;
                while let Some(line) = lines.next_line().await? {
                    outcomes.send(read(&line).ok_or_else(|| format!("a shop printed: {line}"))?)?;
                }
                let status = child.wait().await?;
                if status.success() {
                    Ok(())
                } else {
                    Err(format!("a shop ended: {status}").into())
                }
            }
        }
    }
}

/// Opens all shops at once and collects the results of all buyers.
pub(crate) async fn run_all(
    mut shops: Vec<Shop>,
    tick: impl Fn(),
) -> Result<Vec<Outcome>, Failure> {
    for shop in &mut shops {
        shop.ready().await?;
    }
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let mut running = JoinSet::new();
    for shop in shops {
        running.spawn(shop.run(sender.clone()));
    }
    drop(sender);
    let mut outcomes = Vec::with_capacity(SHOPS * BUYERS);
    while let Some(outcome) = receiver.recv().await {
        outcomes.push(outcome);
        tick();
    }
    while let Some(shop) = running.join_next().await {
        shop??;
    }
    Ok(outcomes)
}

/// The child's side: prints that it is ready, waits for the start, and prints a line for each
/// buyer.
pub(crate) async fn serve_parent(shelf: &Shelf, way: Way) -> Result<(), Failure> {
    println!("ready");
    BufReader::new(tokio::io::stdin()).lines().next_line().await?;
    crowd(shelf, way, |outcome| {
        println!("{} {}", if outcome.sold { "sold" } else { "none" }, outcome.took.as_micros());
    })
    .await
}

async fn crowd(shelf: &Shelf, way: Way, mut report: impl FnMut(Outcome)) -> Result<(), Failure> {
    let mut buyers = JoinSet::new();
    for _ in 0..BUYERS {
        let shelf = shelf.clone();
        buyers.spawn(async move { buy(&shelf, way).await });
    }
    while let Some(buyer) = buyers.join_next().await {
        report(buyer??);
    }
    Ok(())
}

fn read(line: &str) -> Option<Outcome> {
    let (word, micros) = line.split_once(' ')?;
    Some(Outcome { sold: word == "sold", took: Duration::from_micros(micros.parse().ok()?) })
}
