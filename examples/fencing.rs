//! Fencing tokens: a database row rejects the write of a holder that was paused past its lease.
//!
//! A second process takes the lock, reads the stock and is stopped (SIGSTOP), as by a long pause of
//! its machine. Its lease ends, and this process gets the lock and writes. Then the second process
//! continues as if no time had passed, and writes what it computed. No lock can stop that write,
//! which may already be in the network. The row can, because it stores the fencing token of its
//! last writer.
//!
//! ```text
//! DATABASE_URL=postgres://postgres@127.0.0.1/postgres \
//!     cargo run --example fencing --features postgres
//! ```
#![allow(clippy::print_stdout, reason = "a program that talks to a person")]

use std::error::Error;
use std::process::Stdio;
use std::time::Duration;

use lockattr::{FencingToken, LockManager, LockOptions};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::sleep;
use tokio_postgres::{Client, NoTls};

const KEY: &str = "product:42";
const TTL: Duration = Duration::from_secs(1);

/// The row stores the greatest token that has written it. The comparison is `<`, so that one
/// acquisition writes once: a write that is repeated because its answer was lost does not count
/// twice.
const WRITE: &str =
    "UPDATE fencing_example SET quantity = $1, fence = $2 WHERE id = 42 AND fence < $2 AND $1 >= 0";

type Anything = Box<dyn Error + Send + Sync>;

/// Writes the stock as the holder of the lock under `token`. Returns whether the row accepted the
/// write.
async fn write(rows: &Client, quantity: i32, token: FencingToken) -> Result<bool, Anything> {
    Ok(rows.execute(WRITE, &[&quantity, &i64::from(token)]).await? == 1)
}

async fn quantity(rows: &Client) -> Result<i32, Anything> {
    let row = rows.query_one("SELECT quantity FROM fencing_example WHERE id = 42", &[]).await?;
    Ok(row.try_get(0)?)
}

/// The process that is stopped.
async fn sleeper(manager: &LockManager, rows: &Client) -> Result<(), Anything> {
    let guard = manager.acquire(KEY, LockOptions::new().ttl(TTL)).await?;
    let (token, seen) = (guard.fencing_token(), quantity(rows).await?);
    println!(
        "sleeper: holds {KEY} under token {token}, sees {seen} in stock, and begins to compute"
    );
    // SIGSTOP arrives here; the process does not notice.
    sleep(5 * TTL).await;
    match write(rows, seen - 3, token).await? {
        true => println!("sleeper: has written {}", seen - 3),
        false => println!("sleeper: was REFUSED: a holder with a greater token has written"),
    }
    match guard.release().await {
        Ok(()) => println!("sleeper: released"),
        Err(error) => println!("sleeper: {error}"),
    }
    Ok(())
}

/// The process that gets the lock when the lease of the stopped one has ended.
async fn successor(
    manager: &LockManager,
    rows: &Client,
    other: &mut Child,
) -> Result<(), Anything> {
    let mut lines = BufReader::new(other.stdout.take().expect("piped")).lines();
    let first = lines.next_line().await?.ok_or("the sleeper has ended")?;
    println!("{first}");
    signal(other, "-STOP").await?;
    println!("        (stopped)");

    let guard = manager.acquire(KEY, LockOptions::new()).await?;
    let (token, seen) = (guard.fencing_token(), quantity(rows).await?);
    println!("next:    holds {KEY} under token {token}, sees {seen} in stock");
    if !write(rows, seen - 5, token).await? {
        return Err("the row rejected the current holder".into());
    }
    println!("next:    has written {}", seen - 5);
    guard.release().await?;

    println!("        (goes on)");
    signal(other, "-CONT").await?;
    while let Some(line) = lines.next_line().await? {
        println!("{line}");
    }
    println!("in the end there are {} in stock", quantity(rows).await?);
    Ok(())
}

/// Runs `kill -STOP` or `kill -CONT`.
async fn signal(child: &Child, name: &str) -> Result<(), Anything> {
    let id = child.id().ok_or("the sleeper has ended")?.to_string();
    let sent = Command::new("kill").args([name, &id]).status().await?;
    if sent.success() { Ok(()) } else { Err(format!("`kill {name} {id}` failed").into()) }
}

#[tokio::main]
async fn main() -> Result<(), Anything> {
    let database = std::env::var("DATABASE_URL")
        .map_err(|_| "set DATABASE_URL, like postgres://postgres@127.0.0.1/postgres")?;
    let (rows, connection) = tokio_postgres::connect(&database, NoTls).await?;
    tokio::spawn(connection);
    // The lock may be in any store; the row is in PostgreSQL.
    let url = std::env::var("LOCKATTR_URL").unwrap_or(database);
    let manager = LockManager::connect(&url).await?;

    if std::env::args().nth(1).as_deref() == Some("sleeper") {
        return sleeper(&manager, &rows).await;
    }
    rows.batch_execute(
        "CREATE TABLE IF NOT EXISTS fencing_example
             (id int PRIMARY KEY, quantity int NOT NULL, fence bigint NOT NULL);
         INSERT INTO fencing_example VALUES (42, 100, 0)
             ON CONFLICT (id) DO UPDATE SET quantity = 100, fence = 0",
    )
    .await?;
    let mut other = Command::new(std::env::current_exe()?)
        .arg("sleeper")
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    successor(&manager, &rows, &mut other).await?;
    other.wait().await?;
    manager.shutdown().await;
    Ok(())
}
