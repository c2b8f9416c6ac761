//! Locks between the processes of one machine, in a SQLite file.
//!
//! ```
//! use std::sync::Arc;
//!
//! use lockattr::{LockManager, LockOptions};
//! use lockattr_sqlite_store::SqliteStore;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("locks.db");
//! let manager = LockManager::builder().store(Arc::new(SqliteStore::open(&path)?)).build()?;
//! let guard = manager.acquire("product:42", LockOptions::new()).await?;
//! guard.release().await?;
//! # Ok(())
//! # }
//! ```
//!
//! It has no wait queue, because SQLite cannot notify another process: a waiting caller asks again
//! every `retry_delay`. Leases end by the machine's wall clock.

use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lockattr::store::{
    AcquireOutcome, AcquireRequest, LockKey, ReleaseOutcome, ReleaseRequest, RenewOutcome,
    RenewRequest, Store, StoreError,
};
use lockattr::{FencingToken, HeldLock, Holder, HolderId};
use rusqlite::{
    Connection, ErrorCode, OptionalExtension, Transaction, TransactionBehavior, params,
};
use tokio::sync::oneshot;

/// A commit in WAL mode waits for no disk. A power failure may lose the last ones, but it also ends
/// all processes that held these locks, and fencing tokens follow the clock.
const SCHEMA: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = NORMAL;
    CREATE TABLE IF NOT EXISTS locks (
        name TEXT PRIMARY KEY, value TEXT NOT NULL, fence INTEGER NOT NULL, ends INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS fence (id INTEGER PRIMARY KEY CHECK (id = 0), last INTEGER) STRICT;
    INSERT OR IGNORE INTO fence VALUES (0, 0);";

/// 2024-01-01 in microseconds since 1970: where fencing counters start.
const EPOCH: i64 = 1_704_067_200_000_000;

/// How long a transaction waits for those of other processes.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the connection's thread executes next.
type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// A store in a SQLite file. Its connection has a thread, which executes the commands in the order
/// in which they were sent, also those whose future was dropped.
#[derive(Debug)]
pub struct SqliteStore {
    jobs: Sender<Job>,
}

impl SqliteStore {
    /// Opens the file, and creates it if it does not exist. Waits on this thread for other processes
    /// that open it.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the file cannot be opened or is no database.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let mut connection = Connection::open(path).map_err(failed)?;
        connection.busy_timeout(PATIENCE).map_err(failed)?;
        create(&connection).map_err(failed)?;
        let (jobs, work) = channel::<Job>();
        thread::spawn(move || work.into_iter().for_each(|job| job(&mut connection)));
        Ok(Self { jobs })
    }

    /// Runs `work` in a transaction on the connection's thread, with the time in microseconds.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>, i64) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let stopped = || StoreError::new("the thread of the SQLite connection has stopped");
        let (answer, answered) = oneshot::channel();
        let job = move |connection: &mut Connection| drop(answer.send(commit(connection, work)));
        self.jobs.send(Box::new(job)).map_err(|_| stopped().not_sent())?;
        answered.await.unwrap_or_else(|_| Err(stopped()))
    }
}

/// Creates the tables. While another process opens or closes the file, SQLite answers "busy" at once
/// and ignores the busy timeout (<https://sqlite.org/wal.html>, "Sometimes Queries Return
/// `SQLITE_BUSY` In WAL Mode").
#[expect(clippy::disallowed_methods, reason = "opening a file waits on its thread, as SQLite does")]
fn create(connection: &Connection) -> rusqlite::Result<()> {
    let begun = Instant::now();
    loop {
        match connection.execute_batch(SCHEMA) {
            Err(error) if is_busy(&error) && begun.elapsed() < PATIENCE => {
                thread::sleep(Duration::from_millis(1));
            }
            created => return created,
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

fn failed(error: rusqlite::Error) -> StoreError {
    StoreError::new(format!("SQLite failed: {error}")).with_source(error)
}

/// Compares and changes in one step: `IMMEDIATE` excludes other writers from the first read on.
fn commit<T>(
    connection: &mut Connection,
    work: impl FnOnce(&Transaction<'_>, i64) -> rusqlite::Result<T>,
) -> Result<T, StoreError> {
    let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let transaction = begun.map_err(|error| failed(error).not_sent())?;
    // After the wait for other writers, so that no lease is measured from before it.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let done = work(&transaction, micros(now)).map_err(failed)?;
    transaction.commit().map_err(failed)?;
    Ok(done)
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

fn holder(value: &str, ends: i64, now: i64) -> Holder {
    Holder::from_value(value, u64::try_from(ends - now).ok().map(Duration::from_micros))
}

/// The value and the end of a lock that is held.
fn find(db: &Transaction<'_>, name: &str, now: i64) -> rusqlite::Result<Option<(String, i64)>> {
    let held = "SELECT value, ends FROM locks WHERE name = ?1 AND ends > ?2";
    db.query_row(held, params![name, now], |row| Ok((row.get(0)?, row.get(1)?))).optional()
}

impl Store for SqliteStore {
    async fn acquire(&self, request: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        if let Some(why) = self.refuses_claim(&request.claim) {
            return Err(StoreError::new(why).not_sent());
        }
        let (claim, ttl) = (request.claim.clone(), micros(request.ttl));
        let acquire = move |db: &Transaction<'_>, now: i64| {
            let (name, value) = (claim.key().name(), claim.value());
            db.execute("DELETE FROM locks WHERE ends <= ?1", [now])?;
            if let Some((other, ends)) = find(db, name, now)?.filter(|(held, _)| held != value) {
                let holder = Some(Box::new(holder(&other, ends, now)));
                return Ok(AcquireOutcome::Held { holder, queued: None });
            }
            let next = "UPDATE fence SET last = max(last + 1, ?1) RETURNING last";
            let fence: i64 = db.query_row(next, [now - EPOCH], |row| row.get(0))?;
            let lock = params![name, value, fence, now.saturating_add(ttl)];
            db.execute("INSERT OR REPLACE INTO locks VALUES (?1, ?2, ?3, ?4)", lock)?;
            let fencing = FencingToken::from_counter(fence.unsigned_abs());
            Ok(AcquireOutcome::Acquired { fencing, contended: false })
        };
        self.run(acquire).await
    }

    async fn renew(&self, renewals: &[RenewRequest]) -> Vec<Result<RenewOutcome, StoreError>> {
        let (renewals, count) = (renewals.to_vec(), renewals.len());
        let renew = move |db: &Transaction<'_>, now: i64| {
            let sql = "UPDATE locks SET ends = max(ends, ?3) WHERE name = ?1 AND value = ?2 AND ends > ?4";
            let one = |renewal: RenewRequest| {
                let (claim, ends) = (renewal.claim, now.saturating_add(micros(renewal.ttl)));
                let held = params![claim.key().name(), claim.value(), ends, now];
                Ok(match db.execute(sql, held)? {
                    0 => RenewOutcome::NotHeld,
                    _ => RenewOutcome::Renewed,
                })
            };
            renewals.into_iter().map(one).collect::<rusqlite::Result<Vec<_>>>()
        };
        each(self.run(renew).await, count)
    }

    async fn release(
        &self,
        releases: &[ReleaseRequest],
    ) -> Vec<Result<ReleaseOutcome, StoreError>> {
        let (releases, count) = (releases.to_vec(), releases.len());
        let release = move |db: &Transaction<'_>, now: i64| {
            // A lock whose lease ends now is free.
            let sql = "UPDATE locks SET ends = ?3 WHERE name = ?1 AND value = ?2 AND ends > ?4";
            let one = |release: ReleaseRequest| {
                let (claim, ends) = (release.claim, now.saturating_add(micros(release.after)));
                let held = params![claim.key().name(), claim.value(), ends, now];
                Ok(match db.execute(sql, held)? {
                    0 => ReleaseOutcome::NotHeld,
                    _ => ReleaseOutcome::Released,
                })
            };
            let outcomes = releases.into_iter().map(one).collect::<rusqlite::Result<Vec<_>>>()?;
            db.execute("DELETE FROM locks WHERE ends <= ?1", [now])?;
            Ok(outcomes)
        };
        each(self.run(release).await, count)
    }

    async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, StoreError> {
        let name = key.name().to_owned();
        let look = move |db: &Transaction<'_>, now| {
            Ok(find(db, &name, now)?.map(|(value, ends)| holder(&value, ends, now)))
        };
        self.run(look).await
    }

    async fn held_locks(&self, prefix: &str) -> Result<Vec<HeldLock>, StoreError> {
        let prefix = prefix.to_owned();
        let list = move |db: &Transaction<'_>, now: i64| {
            let mut all =
                db.prepare("SELECT name, value, fence, ends FROM locks WHERE ends > ?1")?;
            let mut rows = all.query([now])?;
            let mut listed = Vec::new();
            while let Some(row) = rows.next()? {
                let (name, value): (String, String) = (row.get(0)?, row.get(1)?);
                let (fence, ends): (i64, i64) = (row.get(2)?, row.get(3)?);
                if let Some(key) = name.strip_prefix(&prefix).filter(|key| !key.is_empty()) {
                    let mut held = HeldLock::new(key, holder(&value, ends, now));
                    held.fencing_token = Some(FencingToken::from_counter(fence.unsigned_abs()));
                    listed.push(held);
                }
            }
            Ok(listed)
        };
        self.run(list).await
    }

    async fn force_release(&self, key: &LockKey, holder: &HolderId) -> Result<bool, StoreError> {
        let (name, seen) = (key.name().to_owned(), *holder);
        let take = move |db: &Transaction<'_>, now: i64| {
            let held = find(db, &name, now)?.filter(|(value, _)| HolderId::of(value) == seen);
            let Some((value, _)) = held else { return Ok(false) };
            let sql = "DELETE FROM locks WHERE name = ?1 AND value = ?2";
            Ok(db.execute(sql, params![name, value])? > 0)
        };
        self.run(take).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.run(|_, _| Ok(())).await
    }
}

/// The answers of a batch, or the same error for each of its requests.
fn each<T>(answers: Result<Vec<T>, StoreError>, count: usize) -> Vec<Result<T, StoreError>> {
    match answers {
        Ok(answers) => answers.into_iter().map(Ok).collect(),
        Err(error) => (0..count).map(|_| Err(error.clone())).collect(),
    }
}
