//! The errors of an order, and their HTTP statuses.

use std::error::Error;
use std::time::Duration;

use axum::Json;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use lockattr::Error as LockError;
use serde_json::json;

pub(crate) type Anything = Box<dyn Error + Send + Sync>;

/// Why an order failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OrderError {
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error("the row of product {0} has a later fencing token, or too few items")]
    Overtaken(i64),
    #[error("no such product: {0}")]
    NoSuchProduct(i64),
    #[error("only {left} of product {product} are left")]
    SoldOut { product: i64, left: i32 },
    #[error("the quantity has to be 1 or more")]
    NoQuantity,
    #[error("the database: {0}")]
    Database(#[from] tokio_postgres::Error),
    #[error("the database: {0}")]
    Pool(#[from] deadpool_postgres::PoolError),
}

impl OrderError {
    /// The status, an error code for programs, and when to retry.
    fn answer(&self) -> (StatusCode, &'static str, Option<Duration>) {
        const SECOND: Duration = Duration::from_secs(1);
        match self {
            // Another call holds the product's lock, and this call's wait has timed out. The
            // customer can retry.
            Self::Lock(LockError::Contended { .. } | LockError::Deadlock { .. }) => {
                (StatusCode::CONFLICT, "busy", Some(SECOND))
            }
            // This instance is shutting down; another will accept the order.
            Self::Lock(LockError::ShutDown { .. }) => {
                (StatusCode::SERVICE_UNAVAILABLE, "ending", Some(SECOND))
            }
            Self::Lock(LockError::Store { .. }) | Self::Database(_) | Self::Pool(_) => {
                (StatusCode::SERVICE_UNAVAILABLE, "unavailable", Some(5 * SECOND))
            }
            // The order may or may not have been written, so the client must not retry without
            // checking.
            Self::Lock(LockError::Lost { .. }) => (StatusCode::INTERNAL_SERVER_ERROR, "lost", None),
            // The order was certainly not written.
            Self::Overtaken(_) => (StatusCode::INTERNAL_SERVER_ERROR, "overtaken", None),
            // A bug in this program.
            Self::Lock(_) => (StatusCode::INTERNAL_SERVER_ERROR, "wrong", None),
            Self::NoSuchProduct(_) => (StatusCode::NOT_FOUND, "no_such_product", None),
            Self::SoldOut { .. } => (StatusCode::CONFLICT, "sold_out", None),
            Self::NoQuantity => (StatusCode::UNPROCESSABLE_ENTITY, "no_quantity", None),
        }
    }
}

impl IntoResponse for OrderError {
    fn into_response(self) -> Response {
        let (status, word, retry_after) = self.answer();
        // The response hides internal details: the holder of a lock, the address of the database.
        let mut said = status.canonical_reason().unwrap_or_default().to_owned();
        if status.is_server_error() {
            tracing::error!(error = %self, status = status.as_u16(), "an order failed");
        } else {
            tracing::info!(error = %self, status = status.as_u16(), "an order was refused");
            if !matches!(self, Self::Lock(_)) {
                said = self.to_string();
            }
        }
        let mut response =
            (status, Json(json!({ "error": word, "message": said }))).into_response();
        if let Some(after) = retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(after.as_secs()));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use lockattr::{LostReason, store::StoreError};

    use super::*;

    #[track_caller]
    fn check(error: LockError, status: u16, word: &str, retry_after: Option<u64>) {
        let (got, said, after) = OrderError::from(error).answer();
        assert_eq!((got.as_u16(), said), (status, word));
        assert_eq!(after.map(|after| after.as_secs()), retry_after);
    }

    /// Errors that the tests with servers cannot produce at will.
    #[test]
    fn each_lock_error_has_a_status_that_says_what_to_do() {
        let key = || "product:7".to_owned();
        let (attempts, waited, holder) = (1, Duration::ZERO, None);
        check(LockError::Contended { key: key(), attempts, waited, holder }, 409, "busy", Some(1));
        let source = StoreError::new("gone");
        check(LockError::Store { key: key(), source }, 503, "unavailable", Some(5));
        check(LockError::ShutDown { key: key() }, 503, "ending", Some(1));
        check(LockError::Lost { key: key(), reason: LostReason::Expired }, 500, "lost", None);
        check(LockError::NoManager, 500, "wrong", None);
    }

    #[test]
    fn a_response_does_not_reveal_the_addresses_of_our_servers() {
        let source = StoreError::new("redis://10.0.0.7/ is away");
        let error = OrderError::Lock(LockError::Store { key: "product:7".into(), source });
        let response = error.into_response();
        assert_eq!(response.headers()[RETRY_AFTER], "5");
        let body = format!("{:?}", response.body());
        assert!(!body.contains("10.0.0.7"), "{body}");
    }
}
