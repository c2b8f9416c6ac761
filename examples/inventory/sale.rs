//! The sale: takes one item out of the stock.

use std::time::Duration;

use lockattr::distributed_lock;
use tokio::time::Instant;

use crate::shelf::Shelf;

/// The product that all buyers want.
pub(crate) const PRODUCT: u64 = 42;

/// Whether the sale uses the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Without,
    With,
}

impl Way {
    pub(crate) fn parse(word: &str) -> Option<Self> {
        match word {
            "with" => Some(Self::With),
            "without" => Some(Self::Without),
            _ => None,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::With => "with",
            Self::Without => "without",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) sold: bool,
    pub(crate) took: Duration,
}

#[derive(Debug)]
pub(crate) enum OrderError {
    Lock(lockattr::Error),
    Shelf(redis::RedisError),
}

impl From<lockattr::Error> for OrderError {
    fn from(error: lockattr::Error) -> Self {
        Self::Lock(error)
    }
}

impl From<redis::RedisError> for OrderError {
    fn from(error: redis::RedisError) -> Self {
        Self::Shelf(error)
    }
}

impl std::fmt::Display for OrderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Lock(error) => error.fmt(f),
            Self::Shelf(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OrderError {}

/// One buyer, from the click to the answer.
pub(crate) async fn buy(shelf: &Shelf, way: Way) -> Result<Outcome, OrderError> {
    let started = Instant::now();
    let sold = match way {
        Way::Without => take_one(shelf).await?,
        Way::With => deduct(PRODUCT, shelf).await?,
    };
    Ok(Outcome { sold, took: started.elapsed() })
}

/// The attribute is the only difference between the two ways.
#[distributed_lock(key = "product:<id>", ttl = "10s", wait = "60s", retry_delay = "40ms")]
async fn deduct(id: u64, shelf: &Shelf) -> Result<bool, OrderError> {
    let sold = take_one(shelf).await?;
    // The lease is valid, or the body would not run.
    debug_assert_eq!(lockattr::current().map(|lease| lease.depth()), Some(1));
    Ok(sold)
}

/// Reads the stock, pauses, and writes it back.
async fn take_one(shelf: &Shelf) -> Result<bool, OrderError> {
    let pieces = shelf.pieces().await?;
    if pieces == 0 {
        return Ok(false);
    }
    tokio::time::sleep(Duration::from_millis(10)).await;
    shelf.write(pieces - 1).await?;
    Ok(true)
}
