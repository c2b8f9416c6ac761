//! `node lock url=… [counter=…] [shelf=…] [trust=ca.pem]`: acquires and releases locks on order, and shuts down at the end.
//!
//! | order | answer |
//! |---|---|
//! | `acquire KEY` | `held TOKEN`, or `refused ERROR` |
//! | `share KEY` | the same with `mode = shared` |
//! | `permit KEY COUNT` | the same with `permits = COUNT` |
//! | `crowd COUNT MODE KEY…` | `waits`: COUNT tasks acquire the keys at the same time, and each releases them; MODE as `mode` in the options, or `permits=COUNT` |
//! | `release` | `released`, or `refused ERROR` |
//! | `fence KEY COUNT` | COUNT lines, each the fencing token of one acquisition and release |
//! | `add COUNT` | `added COUNT`: under a lock, COUNT times read the key `count` of `counter`, which is `url` by default, and written it back incremented |
//! | `write` | `written`, or `refused ERROR` if `ensure_held` fails; writes to the `shelf`, if one is given |
//! | `left` | `left MILLISECONDS`: the time left of the lease, or 0 |

use std::error::Error;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use lockattr::{Lease, LockGuard, LockManager, LockOptions, Mode};
use lockattr_tests::ResourceFile;
use redis::AsyncCommands;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, stdin, stdout};

use crate::arguments::Arguments;

pub(crate) async fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let trust = arguments.get_or("trust", String::new())?;
    if !trust.is_empty() && std::env::var_os(CERTIFICATES) != Some(trust.clone().into()) {
        return Err(again_trusting(&trust).into());
    }
    let url: String = arguments.get_or("url", String::new())?;
    let resource: String = arguments.get_or("resource", String::new())?;
    let counter: String = arguments.get_or("counter", url.clone())?;
    let manager = LockManager::connect(&url).await?;
    let mut held: Option<LockGuard> = None;
    let mut orders = BufReader::new(stdin()).lines();
    while let Some(order) = orders.next_line().await? {
        let words: Vec<_> = order.split(' ').collect();
        let answer = match words[..] {
            ["acquire", key] => acquire(&manager, key, LockOptions::new(), &mut held).await,
            ["share", key] => {
                acquire(&manager, key, LockOptions::new().mode(Mode::Shared), &mut held).await
            }
            ["permit", key, count] => {
                let options = LockOptions::new().permits(count.parse()?);
                acquire(&manager, key, options, &mut held).await
            }
            ["crowd", count, mode, ref keys @ ..] => {
                crowd(&manager, count.parse()?, mode, keys)?;
                "waits".into()
            }
            ["release"] => match held.take().ok_or("nothing is held")?.release().await {
                Ok(()) => "released".into(),
                Err(error) => format!("refused {error}"),
            },
            ["write"] if !resource.is_empty() => {
                let lease = held.as_ref().ok_or("nothing is held")?;
                match ResourceFile::at(&resource).add(lease, Duration::ZERO).await? {
                    true => "written".into(),
                    false => format!("refused {}", lease.ensure_held().expect_err("it is lost")),
                }
            }
            ["left"] => {
                let left = held.as_ref().map(|lease| lease.remaining().as_millis());
                format!("left {}", left.unwrap_or(0))
            }
            ["write"] => match held.as_ref().ok_or("nothing is held")?.ensure_held() {
                Ok(()) => "written".into(),
                Err(error) => format!("refused {error}"),
            },
            ["add", count] => add(&manager, &counter, count.parse()?).await?,
            ["fence", key, count] => fence(&manager, key, count.parse()?).await?.join("\n"),
            _ => return Err(format!("no order `{order}`").into()),
        };
        stdout().write_all(format!("{answer}\n").as_bytes()).await?;
        stdout().flush().await?;
    }
    drop(held);
    manager.shutdown().await;
    Ok(())
}

/// The variable that tells rustls which certificates to trust.
const CERTIFICATES: &str = "SSL_CERT_FILE";

/// Replaces the process by a new one of this program, because a process should not change its own
/// environment. Returns only on failure.
fn again_trusting(certificates: &str) -> std::io::Error {
    let program = std::env::current_exe().unwrap_or_else(|_| "node".into());
    Command::new(program).args(std::env::args_os().skip(1)).env(CERTIFICATES, certificates).exec()
}

/// For contended locks: a long timeout and short pauses.
fn patient() -> LockOptions {
    LockOptions::new().wait(Duration::from_secs(60)).retry_delay(Duration::from_millis(5))
}

async fn acquire(
    manager: &LockManager,
    key: &str,
    options: LockOptions,
    held: &mut Option<LockGuard>,
) -> String {
    match manager.acquire(key, options).await {
        Ok(guard) => format!("held {}", held.insert(guard).fencing_token()),
        Err(error) => format!("refused {error}"),
    }
}

/// Tasks that wait for the keys until each has acquired them once.
fn crowd(
    manager: &LockManager,
    count: usize,
    mode: &str,
    keys: &[&str],
) -> Result<(), Box<dyn Error>> {
    let options = match mode.split_once('=') {
        Some(("permits", permits)) => LockOptions::new().permits(permits.parse()?),
        _ if mode == "shared" => LockOptions::new().mode(Mode::Shared),
        _ => LockOptions::new(),
    };
    for _ in 0..count {
        let (manager, options) = (manager.clone(), options.clone());
        let keys: Vec<_> = keys.iter().map(ToString::to_string).collect();
        tokio::spawn(async move {
            // The process may end before it acquires them.
            if let Ok(guard) = manager.acquire_all(keys, options).await {
                drop(guard.release().await);
            }
        });
    }
    Ok(())
}

async fn add(manager: &LockManager, url: &str, count: u32) -> Result<String, Box<dyn Error>> {
    let mut resource = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
    for _ in 0..count {
        let add = async |_: &Lease| -> redis::RedisResult<()> {
            let seen: u32 = resource.get("count").await?;
            resource.set("count", seen + 1).await
        };
        manager.with_lock("count", patient(), add).await??;
    }
    Ok(format!("added {count}"))
}

async fn fence(
    manager: &LockManager,
    key: &str,
    count: usize,
) -> Result<Vec<String>, lockattr::Error> {
    let mut tokens = Vec::new();
    while tokens.len() < count {
        let guard = manager.acquire(key, patient()).await?;
        tokens.push(guard.fencing_token().to_string());
        guard.release().await?;
    }
    Ok(tokens)
}
