//! Fencing tokens that the database checks, in triggers that the command `lockattr fence sql` makes.
//!
//! Such a table refuses each write whose transaction has a smaller [`FencingToken`](crate::FencingToken) than the one that
//! has last written the row. So no statement has to compare tokens itself, and none can forget to:
//! a write without a token is refused too.
//!
//! ```sh
//! lockattr fence sql --engine postgres --table stock | psql shop
//! ```
//!
//! In PostgreSQL, [`FencingToken::fence_in`](crate::FencingToken::fence_in) gives an open transaction its token. In MySQL and
//! MariaDB, a [`FencedTransaction`] does, which removes it again before the commit.
//!
//! The triggers protect from late writes, not from a malicious user: a user that may write the table can
//! also choose a token.

use std::error::Error;

#[cfg(feature = "mysql")]
pub use super::mysql::{FencedTransaction, MysqlTransaction};
use crate::lock::error::causes;

/// The SQLSTATE of a write whose token is smaller than the one that has written the row.
pub const FENCED_OFF: &str = "LKF01";

/// The SQLSTATE of a write without a token.
pub const UNFENCED: &str = "LKF02";

/// Whether a table refused a write because a holder with a greater token has written the row.
///
/// The caller's lease has ended, and another holder has acquired the lock since. Roll the transaction
/// back. Repeating it under the same token fails again.
///
/// Knows the errors of tokio-postgres and `mysql_async` (features `postgres` and `mysql`) and of sqlx
/// (feature `sqlx`), also as the [source](Error::source) of another error. For other clients, compare
/// the SQLSTATE with [`FENCED_OFF`].
///
/// ```
/// # async fn sell(transaction: &tokio_postgres::Transaction<'_>) -> Result<bool, tokio_postgres::Error> {
/// use lockattr::fence::is_fenced_off;
///
/// let sell = "UPDATE stock SET quantity = quantity - 1 WHERE id = 42";
/// match transaction.execute(sell, &[]).await {
///     Err(error) if is_fenced_off(&error) => Ok(false),
///     outcome => outcome.map(|rows| rows == 1),
/// }
/// # }
/// ```
pub fn is_fenced_off(error: &(dyn Error + 'static)) -> bool {
    has_state(error, FENCED_OFF)
}

/// Whether a table refused a write because its transaction has no token: the code does not set it.
///
/// ```
/// use lockattr::fence::is_unfenced;
///
/// assert!(!is_unfenced(&std::fmt::Error));
/// ```
pub fn is_unfenced(error: &(dyn Error + 'static)) -> bool {
    has_state(error, UNFENCED)
}

fn has_state(error: &(dyn Error + 'static), state: &str) -> bool {
    causes(error).any(|error| is_state(error, state))
}

fn is_state(error: &(dyn Error + 'static), state: &str) -> bool {
    #[cfg(feature = "sqlx")]
    if let Some(error) = error.downcast_ref::<sqlx::Error>() {
        let sent = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
        return sent.is_some_and(|sent| sent == state);
    }
    #[cfg(feature = "postgres")]
    if let Some(error) = error.downcast_ref::<tokio_postgres::Error>() {
        return error.code().is_some_and(|code| code.code() == state);
    }
    #[cfg(feature = "mysql")]
    if let Some(mysql_async::Error::Server(error)) = error.downcast_ref() {
        return error.state == state;
    }
    false
}
