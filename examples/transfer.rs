//! Transfers between accounts, in both directions at once: `keys` locks both accounts or none.
//!
//! The bank keeps each account in its own file. As with two services or two databases, no
//! transaction spans both. Once without the lock, once with it.
//!
//! ```text
//! cargo run --example transfer                                       # four tasks, in memory
//! LOCKATTR_URL=redis://127.0.0.1/ cargo run --example transfer       # four processes
//! ```
#![allow(clippy::print_stdout, reason = "a program that talks to a person")]

mod fleet;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fleet::Anything;
use lockattr::{LockManager, distributed_lock};
use tokio::task::JoinSet;
use tokio::time::sleep;

const BRANCHES: [&str; 4] = ["1", "2", "3", "4"];
const ACCOUNTS: usize = 5;
const TRANSFERS: usize = 50;
/// The initial balance of each account, in cents.
const OPENING: i64 = 10_000;

/// A directory with a file for each account, which contains its balance in cents.
#[derive(Clone)]
struct Bank(PathBuf);

impl Bank {
    fn balance(&self, account: usize) -> io::Result<i64> {
        let cents = std::fs::read_to_string(self.0.join(account.to_string()))?;
        cents.trim().parse().map_err(io::Error::other)
    }

    /// Writes to a temporary file and renames it, so that no reader sees a partial number.
    fn write(&self, account: usize, cents: i64) -> io::Result<()> {
        static LAST: AtomicUsize = AtomicUsize::new(0);
        let last = LAST.fetch_add(1, Ordering::Relaxed);
        let new = self.0.join(format!("new-{}-{last}", std::process::id()));
        std::fs::write(&new, cents.to_string())?;
        std::fs::rename(new, self.0.join(account.to_string()))
    }

    fn total(&self) -> io::Result<i64> {
        (0..ACCOUNTS).map(|account| self.balance(account)).sum()
    }
}

#[derive(Debug, thiserror::Error)]
enum TransferError {
    #[error(transparent)]
    Lock(#[from] lockattr::Error),
    #[error(transparent)]
    Bank(#[from] io::Error),
}

/// Moves the money, or as much of it as there is. All transfers acquire both locks as one, so none
/// holds one account while it waits for another. Transfers of other accounts run in parallel.
#[distributed_lock(keys = ["account:<from>", "account:<to>"], wait = "60s")]
async fn transfer(bank: &Bank, from: usize, to: usize, cents: i64) -> Result<(), TransferError> {
    Ok(move_money(bank, from, to, cents).await?)
}

async fn move_money(bank: &Bank, from: usize, to: usize, cents: i64) -> io::Result<()> {
    // With one account the two keys are equal, so the lock would be acquired, and the sums would be
    // wrong.
    if from == to {
        return Ok(());
    }
    let (gives, gets) = (bank.balance(from)?, bank.balance(to)?);
    let cents = cents.min(gives);
    sleep(Duration::from_millis(1)).await;
    bank.write(from, gives - cents)?;
    sleep(Duration::from_millis(1)).await;
    bank.write(to, gets + cents)
}

/// One branch at work. Every second transfer goes in the opposite direction.
async fn branch(bank: Bank, branch: usize, locked: bool) -> Result<(), TransferError> {
    for number in 0..TRANSFERS {
        let (one, other) = ((number / 2 + branch) % ACCOUNTS, (number / 2 + 1) % ACCOUNTS);
        let (from, to) = if number % 2 == 0 { (one, other) } else { (other, one) };
        let cents = i64::try_from(100 + 7 * number).unwrap_or_default();
        match locked {
            true => transfer(&bank, from, to, cents).await?,
            false => move_money(&bank, from, to, cents).await?,
        }
    }
    Ok(())
}

/// Runs all branches at once: processes, or tasks if the locks are in memory.
async fn all_branches(url: &str, bank: &Bank, locked: bool) -> Result<(), Anything> {
    if !fleet::is_memory(url) {
        let arguments = [bank.0.display().to_string(), locked.to_string()];
        fleet::run(&BRANCHES, &arguments).await?;
        return Ok(());
    }
    let mut branches = JoinSet::new();
    for name in BRANCHES {
        branches.spawn(branch(bank.clone(), name.parse()?, locked));
    }
    while let Some(done) = branches.join_next().await {
        done??;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Anything> {
    let url = std::env::var("LOCKATTR_URL").unwrap_or_else(|_| "memory://".into());
    let manager = LockManager::builder().url(&url).service("transfer").connect().await?;
    manager.install()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [name, directory, locked] = &arguments[..] {
        let bank = Bank(Path::new(directory).to_owned());
        branch(bank, name.parse()?, locked.parse()?).await?;
        manager.shutdown().await;
        return Ok(());
    }

    let bank = Bank(std::env::temp_dir().join(format!("transfer-{}", std::process::id())));
    std::fs::create_dir_all(&bank.0)?;
    println!("{} × {TRANSFERS} transfers between {ACCOUNTS} accounts", BRANCHES.len());
    for (locked, name) in [(false, "without the lock"), (true, "with the lock")] {
        for account in 0..ACCOUNTS {
            bank.write(account, OPENING)?;
        }
        let before = bank.total()?;
        all_branches(&url, &bank, locked).await?;
        let after = bank.total()?;
        let verdict = if before == after { "exact" } else { "WRONG" };
        println!("{name:>16}: {before} cents before, {after} after: {verdict}");
    }
    std::fs::remove_dir_all(&bank.0)?;
    manager.shutdown().await;
    Ok(())
}
