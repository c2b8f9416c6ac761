//! Fencing tokens: numbers that only grow, so that a resource can reject a holder that was paused.

#[cfg(any(feature = "sqlx", feature = "postgres"))]
mod sql;

use std::fmt;
use std::num::TryFromIntError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::platform::entropy::since_1970;

/// Low bits of a token that the store's counter leaves free, for hand-offs without a request to the
/// store.
pub(crate) const HANDOFF_BITS: u32 = 10;

/// How far a hint may be ahead of a store's clock and counter, in microseconds: an hour. A clock
/// may be wrong by years, and a counter never goes back.
pub(crate) const FARTHEST_HINT: u64 = 3_600_000_000;

/// 2024-01-01T00:00:00Z in seconds since 1970: the start of the counters of all stores.
const EPOCH: Duration = Duration::from_secs(1_704_067_200);

/// The fencing token of one acquisition: greater than that of every earlier acquisition of the same
/// key.
///
/// Send it along with every write, and let the resource reject every token that is not greater than
/// the last one that it accepted (Kleppmann, *How to do distributed locking*, 2016). A holder that
/// was paused past its lease then does no harm, and a repeated write does not count twice. The token is a positive number that fits a signed 64-bit
/// column. A table of PostgreSQL, MySQL or MariaDB can compare tokens by itself: see `lockattr::fence`, with
/// the feature `postgres` or `mysql`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lockattr::Error> {
/// use lockattr::{LockManager, LockOptions};
///
/// let manager = LockManager::connect("memory://").await?;
/// let first = manager.acquire("stock", LockOptions::new()).await?;
/// let token = first.fencing_token();
/// first.release().await?;
///
/// let second = manager.acquire("stock", LockOptions::new()).await?;
/// assert!(second.fencing_token() > token);
/// let column: i64 = second.fencing_token().into();
/// # assert!(column > 0);
/// # Ok(())
/// # }
/// ```
///
/// With the feature `serde` it is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "u64", try_from = "u64"))]
pub struct FencingToken(u64);

impl FencingToken {
    /// Makes the token of an acquisition from the store's counter, which is at least the
    /// microseconds since 2024-01-01 and below 2⁵³. A store gives each number at most once.
    ///
    /// The low ten bits stay free for hand-offs inside a process.
    pub const fn from_counter(counter: u64) -> Self {
        Self((counter << HANDOFF_BITS) & (u64::MAX >> 1))
    }

    /// The token for a counter that a server sent; `None` if the counter is not valid, and the
    /// token would not be unique or not grow.
    #[cfg(any(feature = "redis", feature = "postgres", feature = "mysql"))]
    pub(crate) fn read(counter: u64) -> Option<Self> {
        let token = Self::from_counter(counter);
        (counter > 0 && token.counter() == counter).then_some(token)
    }

    /// The counter that [`from_counter`](Self::from_counter) made it from.
    pub(crate) const fn counter(self) -> u64 {
        self.0 >> HANDOFF_BITS
    }

    /// The token of the next hold of the same lease, handed off inside this process; `None` if the
    /// tokens that the store reserved for hand-offs are used up.
    pub(crate) fn handed_off(self) -> Option<Self> {
        let next = self.0 + 1;
        (next & ((1 << HANDOFF_BITS) - 1) != 0).then_some(Self(next))
    }

    /// The token as a number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Gives tokens to the holders of one shared lease. It stores the last token given.
#[derive(Debug)]
pub(crate) struct TokenSequence(AtomicU64);

impl TokenSequence {
    /// Numbers greater than `last`, of the same lease.
    pub(crate) fn after(last: FencingToken) -> Self {
        Self(AtomicU64::new(last.0))
    }

    /// The next token; `None` if those that the store reserved are used up.
    pub(crate) fn next(&self) -> Option<FencingToken> {
        let next = |last| FencingToken(last).handed_off().map(FencingToken::get);
        let last = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).ok()?;
        FencingToken(last).handed_off()
    }

    /// The greatest token given.
    pub(crate) fn last_token(&self) -> FencingToken {
        FencingToken(self.0.load(Ordering::Acquire))
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<FencingToken> for u64 {
    fn from(token: FencingToken) -> Self {
        token.0
    }
}

impl From<FencingToken> for i64 {
    fn from(token: FencingToken) -> Self {
        // Never negative: `from_counter` keeps the sign bit clear.
        token.0.cast_signed()
    }
}

/// Reads a token that a resource has stored, or that a message carries.
///
/// ```
/// use lockattr::FencingToken;
///
/// let last = FencingToken::try_from(1_i64)?;
/// let mine = FencingToken::try_from(2_i64)?;
/// assert!(mine > last);
/// assert!(FencingToken::try_from(-1_i64).is_err());
/// # Ok::<(), std::num::TryFromIntError>(())
/// ```
///
/// # Errors
///
/// [`TryFromIntError`] if the number is negative.
impl TryFrom<i64> for FencingToken {
    type Error = TryFromIntError;

    fn try_from(number: i64) -> Result<Self, TryFromIntError> {
        u64::try_from(number).map(Self)
    }
}

/// As `TryFrom<i64>`.
///
/// # Errors
///
/// [`TryFromIntError`] if the number does not fit a signed 64-bit column.
impl TryFrom<u64> for FencingToken {
    type Error = TryFromIntError;

    fn try_from(number: u64) -> Result<Self, TryFromIntError> {
        i64::try_from(number).map(|_| Self(number))
    }
}

/// The counter that the clock corresponds to. A counter that follows the clock still grows after
/// its store lost its memory.
pub(crate) fn clock() -> u64 {
    let now = since_1970().saturating_sub(EPOCH);
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}
