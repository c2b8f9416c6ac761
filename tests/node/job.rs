//! `node job url=… [on_lost=error]`: one call of an annotated function, whose body writes on order.
//!
//! | order | what happens |
//! |---|---|
//! | `write` | the body answers `wrote`, without an await between the order and the answer |
//! | `sleep` | the process stops itself (SIGSTOP) while the body awaits; when it is continued, the body's next order is already there |
//!
//! With `on_lost=error` the body calls `ensure_held` before it writes. When the call has ended, its
//! outcome is the last answer: `ended well`, or `ended ERROR`.

use std::error::Error;
use std::io::Write;

use lockattr::{LockManager, distributed_lock};
use nix::sys::signal::{Signal, raise};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};
use tokio::sync::mpsc;

use crate::arguments::Arguments;

type Orders = mpsc::Receiver<()>;

pub(crate) async fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let manager = LockManager::connect(arguments.get_or("url", String::new())?).await?;
    let on_lost = arguments.get_or("on_lost", String::new())?;
    let (give, orders) = mpsc::channel(1);
    let job = async {
        let outcome = match on_lost.as_str() {
            "error" => asking(&manager, orders).await,
            _ => cancelled(&manager, orders).await,
        };
        match outcome {
            Ok(()) => say("ended well"),
            Err(error) => say(&format!("ended {error}")),
        }
    };
    // One task, so that the body is not polled while an order is read.
    let (done, ()) = tokio::try_join!(async { Ok(job.await) }, take_orders(give))?;
    done?;
    manager.shutdown().await;
    Ok(())
}

#[distributed_lock(key = "job", manager = manager)]
async fn cancelled(manager: &LockManager, mut orders: Orders) -> Result<(), Box<dyn Error>> {
    while orders.recv().await.is_some() {
        say("wrote")?;
    }
    Ok(())
}

#[distributed_lock(key = "job", manager = manager, on_lost = error, lease = lease)]
async fn asking(manager: &LockManager, mut orders: Orders) -> Result<(), Box<dyn Error>> {
    while orders.recv().await.is_some() {
        lease.ensure_held()?;
        say("wrote")?;
    }
    Ok(())
}

async fn take_orders(give: mpsc::Sender<()>) -> Result<(), Box<dyn Error>> {
    let mut lines = BufReader::new(stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        match line.as_str() {
            "write" => {}
            "sleep" => raise(Signal::SIGSTOP)?,
            order => return Err(format!("no order `{order}`").into()),
        }
        // A body that has ended takes no more orders.
        give.send(()).await.ok();
    }
    Ok(())
}

/// The line is written when this returns, and never for a body that was dropped before.
fn say(line: &str) -> Result<(), Box<dyn Error>> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}
