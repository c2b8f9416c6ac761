//! `node leave url=… [count=50] [how=bodies]`: acquires the locks `0` to `COUNT - 1`, prints
//! `holding`, and at the next line, or the end of its stdin, returns from `main` without a shutdown.
//!
//! | how | the holders |
//! |---|---|
//! | `bodies` | spawned tasks inside an annotated function |
//! | `guards` | spawned tasks that own a guard |
//! | `forgotten` | none: the guards were leaked |

use std::error::Error;
use std::future::pending;
use std::sync::Arc;

use lockattr::{LockManager, LockOptions, distributed_lock};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, stdin, stdout};
use tokio::sync::Semaphore;

use crate::arguments::Arguments;

pub(crate) async fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let manager = LockManager::connect(arguments.get_or("url", String::new())?).await?;
    let how = arguments.get_or("how", "bodies".to_owned())?;
    let count = arguments.get_or("count", 50)?;
    let held = Arc::new(Semaphore::new(0));
    for id in 0..count {
        let (manager, held) = (manager.clone(), held.clone());
        match how.as_str() {
            "bodies" => drop(tokio::spawn(body(manager, id, held))),
            "guards" => drop(tokio::spawn(guard(manager, id, held))),
            "forgotten" => {
                std::mem::forget(manager.acquire(id.to_string(), LockOptions::new()).await?);
                held.add_permits(1);
            }
            how => return Err(format!("no way to hold `{how}`").into()),
        }
    }
    let _all = held.acquire_many(count).await?;
    stdout().write_all(b"holding\n").await?;
    stdout().flush().await?;
    BufReader::new(stdin()).lines().next_line().await?;
    Ok(())
}

#[distributed_lock(key = "<id>", manager = &manager)]
async fn body(manager: LockManager, id: u32, held: Arc<Semaphore>) -> Result<(), lockattr::Error> {
    held.add_permits(1);
    pending().await
}

async fn guard(manager: LockManager, id: u32, held: Arc<Semaphore>) -> Result<(), lockattr::Error> {
    let _guard = manager.acquire(id.to_string(), LockOptions::new()).await?;
    held.add_permits(1);
    pending().await
}
