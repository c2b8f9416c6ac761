//! What the client receives when a request fails.

use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use lockattr::Error as LockError;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The lock was not acquired, or was lost.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The database failed.
    #[error("the database: {0}")]
    Database(#[from] sqlx::Error),
    /// A later holder of the lock has written the row, which refused this write.
    #[error("overtaken by another request: nothing was written")]
    Overtaken,
    /// There is no such product.
    #[error("no such product")]
    NoSuchProduct,
    /// The stock does not have that many.
    #[error("sold out")]
    SoldOut,
    /// The product has enough reservations.
    #[error("fully reserved")]
    FullyReserved,
}

impl Failure {
    /// The status, and after how many seconds another try makes sense.
    ///
    /// `Retry-After` is given only if the request did nothing and another try may succeed. After a
    /// contended lock it is a second, whatever remains of the holder's lease: most holders release
    /// theirs long before it ends, others renew it, and clients that all wait for that moment would
    /// come back at once.
    fn answer(&self) -> (StatusCode, Option<u32>) {
        match self {
            Self::Lock(LockError::Contended { .. } | LockError::Deadlock { .. }) => {
                (StatusCode::CONFLICT, Some(1))
            }
            // Another instance can take the request.
            Self::Lock(LockError::ShutDown { .. }) => (StatusCode::SERVICE_UNAVAILABLE, Some(1)),
            // The store is away, and the function has not run; or no connection became free.
            Self::Lock(LockError::Store { .. }) | Self::Database(sqlx::Error::PoolTimedOut) => {
                (StatusCode::SERVICE_UNAVAILABLE, Some(5))
            }
            // The work was stopped somewhere: the client has to look before it tries again.
            Self::Lock(LockError::Lost { .. }) => (StatusCode::INTERNAL_SERVER_ERROR, None),
            // A commit without an answer may have been made.
            Self::Lock(_) | Self::Database(_) => (StatusCode::INTERNAL_SERVER_ERROR, None),
            Self::Overtaken => (StatusCode::CONFLICT, Some(1)),
            Self::NoSuchProduct => (StatusCode::NOT_FOUND, None),
            Self::SoldOut | Self::FullyReserved => (StatusCode::CONFLICT, None),
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let (status, retry_after) = self.answer();
        // An error of a lock names its holder, and one of the database its address. Neither is for
        // the client: log `self` here.
        let said = match self {
            Self::Lock(_) | Self::Database(_) => status.canonical_reason().unwrap_or("").to_owned(),
            own => own.to_string(),
        };
        let mut response = (status, said + "\n").into_response();
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}
