//! `node counterexample algorithm=… addrs=… key=… ttl=MILLISECONDS history=… process=N [clock=…] [now=…] [ledger=… fenced=BOOL]`: acquires
//! and releases a lock on order, by an algorithm of the counterexamples or by lockattr, and writes the history.
//!
//! | order | request |
//! |---|---|
//! | `acquire CHAIN` | acquire the lock, in one attempt |
//! | `check CHAIN` | whether it is still held, as far as the algorithm can tell |
//! | `renew CHAIN` | extend the lease |
//! | `release CHAIN` | release the lock |
//! | `read CHAIN` | read the ledger, with the last fencing token |
//! | `write CHAIN` | write what was read and one element more, without another check of the lease |
//! | `add COUNT` | all of this, COUNT times, with retries |
//!
//! The answer is `yes`, `yes FENCE`, `no` or `unknown`. The client's clock is `clock`
//! milliseconds ahead, or stands still at `now`.

mod blind_watchdog;
mod count_field;
mod del_unchecked;
mod desk;
mod getset;
mod ours;
mod redlock_max;
mod server;
mod setnx_expire;
mod timestamp_token;

use std::error::Error;
use std::time::Duration;

use lockattr_history::{Mode, Op, Recorder};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, stdin, stdout};
use tokio::time::sleep;

use crate::arguments::Arguments;
use desk::Desk;
use server::Visit;

/// The answer that an algorithm got, if any.
enum Reply {
    /// Done, with its fencing token if it has one.
    Yes(Option<u64>),
    No,
}

type Answer = Result<Reply, Box<dyn Error>>;

/// A lock as its article describes it. Each chain is a thread of the article's program.
trait Algorithm {
    async fn acquire(&mut self, chain: u32) -> Answer;
    async fn release(&mut self, chain: u32) -> Answer;

    /// Most algorithms have none.
    async fn renew(&mut self, _chain: u32) -> Answer {
        Ok(Reply::No)
    }

    /// What the holder can know without a request. Most articles do not require this check; it
    /// keeps a paused holder from being blamed for the pause.
    fn check(&self, chain: u32) -> bool;
}

pub(crate) async fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let visit = Visit::by(arguments)?;
    let desk = Desk::by(arguments)?;
    let algorithm: String = arguments.get_or("algorithm", String::new())?;
    match algorithm.as_str() {
        "setnx-expire" => serve(setnx_expire::SetnxExpire::new(&visit).await?, &visit, desk).await,
        "del-unchecked" => {
            serve(del_unchecked::DelUnchecked::new(&visit).await?, &visit, desk).await
        }
        "getset" => serve(getset::Getset::new(&visit).await?, &visit, desk).await,
        "timestamp-token" => {
            serve(timestamp_token::TimestampToken::new(&visit).await?, &visit, desk).await
        }
        "count-field" => serve(count_field::CountField::new(&visit).await?, &visit, desk).await,
        "redlock-max" => serve(redlock_max::RedlockMax::new(&visit), &visit, desk).await,
        "blind-watchdog" => {
            serve(blind_watchdog::BlindWatchdog::new(&visit).await?, &visit, desk).await
        }
        "lockattr" => serve(ours::Ours::new(&visit)?, &visit, desk).await,
        other => Err(format!("no algorithm `{other}`").into()),
    }
}

async fn serve(lock: impl Algorithm, visit: &Visit, mut desk: Desk) -> Result<(), Box<dyn Error>> {
    let recorder = Recorder::to_file(visit.process, &visit.history)?;
    let mut recorded = Recorded { lock, recorder, key: &visit.key };
    let mut orders = BufReader::new(stdin()).lines();
    let mut last = 0;
    while let Some(order) = orders.next_line().await? {
        let (verb, number) = order.split_once(' ').ok_or("an order is VERB NUMBER")?;
        let number: u32 = number.parse()?;
        let answer = match verb {
            "read" => yes_or_no(desk.reads(last)),
            "write" => yes_or_no(desk.writes()?),
            "add" => {
                for _ in 0..number {
                    let Answered::Yes(fence) = recorded.acquire_with_retries().await else {
                        continue;
                    };
                    if desk.reads(fence.unwrap_or(0)) {
                        // Other processes can get in between.
                        sleep(PAUSE).await;
                        desk.writes()?;
                    }
                    recorded.call(Op::Release, 0).await;
                }
                yes_or_no(true)
            }
            _ => {
                let op = match verb {
                    "acquire" => Op::Acquire(Mode::Exclusive),
                    "check" => Op::Check,
                    "renew" => Op::Renew,
                    "release" => Op::Release,
                    _ => return Err(format!("no order `{order}`").into()),
                };
                match recorded.call(op, number).await {
                    Answered::Yes(Some(fence)) => {
                        last = fence;
                        format!("yes {fence}")
                    }
                    Answered::Yes(None) => yes_or_no(true),
                    Answered::No => yes_or_no(false),
                    Answered::Unknown => "unknown".to_owned(),
                }
            }
        };
        stdout().write_all(format!("{answer}\n").as_bytes()).await?;
        stdout().flush().await?;
    }
    Ok(())
}

/// Between reading and writing.
const PAUSE: Duration = Duration::from_millis(1);

fn yes_or_no(done: bool) -> String {
    if done { "yes" } else { "no" }.to_owned()
}

enum Answered {
    Yes(Option<u64>),
    No,
    Unknown,
}

/// A lock whose calls are recorded.
struct Recorded<'a, A> {
    lock: A,
    recorder: Recorder,
    key: &'a str,
}

impl<A: Algorithm> Recorded<'_, A> {
    async fn call(&mut self, op: Op, chain: u32) -> Answered {
        let call = self.recorder.invoke(chain, self.key, op);
        let reply = match op {
            Op::Acquire(_) => self.lock.acquire(chain).await,
            Op::Renew => self.lock.renew(chain).await,
            Op::Release => self.lock.release(chain).await,
            _ => Ok(if self.lock.check(chain) { Reply::Yes(None) } else { Reply::No }),
        };
        match reply {
            Ok(Reply::Yes(fence)) => {
                call.ok(fence);
                Answered::Yes(fence)
            }
            Ok(Reply::No) => {
                call.fail();
                Answered::No
            }
            Err(_) => {
                call.unknown();
                Answered::Unknown
            }
        }
    }

    /// Asks until it has the lock.
    async fn acquire_with_retries(&mut self) -> Answered {
        loop {
            match self.call(Op::Acquire(Mode::Exclusive), 0).await {
                Answered::No => sleep(PAUSE).await,
                answered => return answered,
            }
        }
    }
}
