//! `node work url=… key=… resource=…`: says `ready` when it has a manager; then adds to the shelf under
//! the lock, again and again and whatever fails, until a line comes: then it says `added COUNT`.
//!
//! Two holders at once end it with an error.

use std::cell::Cell;
use std::error::Error;
use std::io::Write;
use std::time::Duration;

use lockattr::{Error as LockError, LockManager, LockOptions};
use lockattr_tests::ResourceFile;
use tokio::io::{AsyncBufReadExt, BufReader, stdin};
use tokio::time::sleep;

use crate::arguments::Arguments;

/// Between reading and writing: most of the time, so that a caller that comes in beside a holder is seen.
const PAUSE: Duration = Duration::from_millis(10);

/// The same, now and then: long enough for the network to fail meanwhile.
const LONG: Duration = Duration::from_millis(400);

/// One of so many turns is a long one.
const NOW_AND_THEN: u64 = 10;

pub(crate) async fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let url: String = arguments.get_or("url", String::new())?;
    let key: String = arguments.get_or("key", String::new())?;
    let resource = ResourceFile::at(arguments.get_or("resource", String::new())?);
    let manager = LockManager::builder().url(url).build()?;
    say("ready")?;
    let mut orders = BufReader::new(stdin()).lines();
    let (added, over) = (Cell::new(0_u64), Cell::new(false));
    let mut turns = 0_u64;
    // A turn that has begun is completed, so that the count is exact.
    let working = async {
        while !over.get() {
            let pause = if turns % NOW_AND_THEN == NOW_AND_THEN - 1 { LONG } else { PAUSE };
            turns += 1;
            let done = add(&manager, &key, &resource, pause).await?;
            added.set(added.get() + u64::from(done));
        }
        Ok(())
    };
    let notified = async {
        orders.next_line().await?;
        over.set(true);
        Ok::<_, Box<dyn Error>>(())
    };
    tokio::try_join!(working, notified)?;
    say(&format!("added {}", added.get()))?;
    manager.shutdown().await;
    Ok(())
}

/// Whether it has added one. Only two holders at once are an error, or a refusal forever.
async fn add(
    manager: &LockManager,
    key: &str,
    resource: &ResourceFile,
    pause: Duration,
) -> Result<bool, Box<dyn Error>> {
    let options = LockOptions::new().wait(Duration::from_secs(3));
    let guard = match manager.acquire(key, options).await {
        Ok(guard) => guard,
        // The lease of a grant may have ended before this process ran again.
        Err(LockError::Contended { .. } | LockError::Store { .. } | LockError::Lost { .. }) => {
            // An outage is reported at once.
            sleep(PAUSE).await;
            return Ok(false);
        }
        Err(error) => return Err(error.into()),
    };
    let added = resource.add(&guard, pause).await?;
    // Its answer may be lost, or the lease may.
    guard.release().await.ok();
    Ok(added)
}

fn say(line: &str) -> Result<(), Box<dyn Error>> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}
