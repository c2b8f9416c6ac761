//! Counts in a text file, under a lock in a SQLite file. Run it several times at once: no step is lost.
//!
//! ```sh
//! cargo run -p lockattr-sqlite-store -- locks.db counter.txt 100
//! ```

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs, process};

use lockattr::{LockManager, distributed_lock};
use lockattr_sqlite_store::SqliteStore;

#[distributed_lock(key = "counter", wait = "60s")]
async fn count(file: &Path) -> Result<(), Box<dyn Error>> {
    let counted = fs::read_to_string(file).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    tokio::task::yield_now().await;
    Ok(fs::write(file, (counted + 1).to_string())?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let [database, file, times] = &arguments[..] else {
        return Err("arguments: DATABASE FILE TIMES".into());
    };
    // Without a wait queue, a waiting process asks again after each of these pauses.
    let store = SqliteStore::open(database)?;
    let builder =
        LockManager::builder().store(Arc::new(store)).service(format!("count {}", process::id()));
    builder.retry_delay(Duration::from_millis(10)).build()?.install()?;
    for _ in 0..times.parse()? {
        count(Path::new(file)).await?;
    }
    Ok(())
}
