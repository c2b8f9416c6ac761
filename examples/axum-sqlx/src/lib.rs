//! A shop with axum, sqlx and PostgreSQL: three ways to lock, and what the client receives.
//!
//! | request | its lock |
//! |---|---|
//! | `PUT /products/{id}` | the attribute on the handler |
//! | `POST /products/{id}/orders` | the attribute on a function of the service, around its transaction |
//! | `POST /products/{id}/reservations` | `acquire_in`, inside the service's own transaction |

mod failure;
mod orders;
mod reservations;

use axum::extract::{Json, Path, State};
use axum::http::StatusCode;
use axum::routing::{post, put};
use axum::{Router, serve};
use lockattr::{LockManager, distributed_lock};
use serde::Deserialize;
use sqlx::PgPool;
use tokio::net::TcpListener;

pub use failure::Failure;

/// What the handlers share.
#[derive(Clone, Debug)]
pub struct App {
    /// The service's own pool. lockattr never takes a connection from it.
    pub pool: PgPool,
    /// A manager whose locks are in the same database, for [`LockManager::acquire_in`].
    pub database_locks: LockManager,
}

impl App {
    /// Creates the tables, unless they exist.
    ///
    /// # Errors
    ///
    /// If the database refuses or does not answer.
    ///
    /// # Cancel safety
    ///
    /// If dropped, the tables may or may not exist: call it again.
    pub async fn open(pool: PgPool, database_locks: LockManager) -> Result<Self, sqlx::Error> {
        sqlx::raw_sql(include_str!("schema.sql")).execute(&pool).await?;
        Ok(Self { pool, database_locks })
    }
}

/// The routes.
pub fn router(app: App) -> Router {
    Router::new()
        .route("/products/{id}", put(count))
        .route("/products/{id}/orders", post(order))
        .route("/products/{id}/reservations", post(reserve))
        .with_state(app)
}

/// Serves until `stops` ends and the requests in progress are answered, and then releases the locks.
///
/// # Errors
///
/// If the listener fails.
///
/// # Cancel safety
///
/// If dropped, requests in progress go on, and locks may stay held until their leases end.
pub async fn run(
    listener: TcpListener,
    app: App,
    locks: LockManager,
    stops: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let database_locks = app.database_locks.clone();
    serve(listener, router(app)).with_graceful_shutdown(stops).await?;
    // Only now: a shutdown takes the locks away from requests in progress.
    locks.shutdown().await;
    database_locks.shutdown().await;
    Ok(())
}

/// The quantity in a request.
#[derive(Deserialize)]
struct Quantity {
    quantity: i32,
}

/// The attribute on a handler: the key is made from what the pattern `Path(id)` binds. It stands
/// below any other attribute of the handler.
#[distributed_lock(key = "product:<id>", ttl = "10s", wait = "2s", lease = lease)]
async fn count(
    State(app): State<App>,
    Path(id): Path<i64>,
    Json(Quantity { quantity }): Json<Quantity>,
) -> Result<StatusCode, Failure> {
    let wrote = sqlx::query(
        "insert into stock as row (product, quantity, fence) values ($1, $2, $3)
         on conflict (product) do update set quantity = $2, fence = $3 where row.fence < $3",
    );
    let wrote = wrote.bind(id).bind(quantity).bind(lease.fencing_token()).execute(&app.pool);
    match wrote.await?.rows_affected() {
        0 => Err(Failure::Overtaken),
        _ => Ok(StatusCode::NO_CONTENT),
    }
}

async fn order(
    State(app): State<App>,
    Path(id): Path<i64>,
    Json(Quantity { quantity }): Json<Quantity>,
) -> Result<(StatusCode, String), Failure> {
    let left = orders::place(&app.pool, id, quantity).await?;
    Ok((StatusCode::CREATED, format!("{left} left\n")))
}

async fn reserve(
    State(app): State<App>,
    Path(id): Path<i64>,
) -> Result<(StatusCode, String), Failure> {
    let nth = reservations::add(&app, id).await?;
    Ok((StatusCode::CREATED, format!("reservation {nth} of {}\n", reservations::MOST)))
}
