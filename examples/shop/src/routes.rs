//! The HTTP routes.

use std::time::Duration;

use axum::extract::{MatchedPath, Path, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use lockattr::LockManager;
use metrics_exporter_prometheus::PrometheusHandle;
use serde::{Deserialize, Serialize};
use tracing::Instrument;

use crate::failure::OrderError;
use crate::inventory::{self, Order};
use crate::stock::Stock;

#[derive(Clone)]
pub(crate) struct Shop {
    pub(crate) stock: Stock,
    pub(crate) locks: LockManager,
    pub(crate) metrics: PrometheusHandle,
    pub(crate) packing: Duration,
}

#[derive(Deserialize, Serialize)]
struct Quantity {
    quantity: i32,
}

pub(crate) fn all(shop: Shop) -> Router {
    Router::new()
        .route("/products/{product}", get(left).put(count))
        .route("/products/{product}/orders", post(order))
        // Without the tracing span: frequent health checks would fill the log.
        .route_layer(middleware::from_fn(traced))
        .route("/health", get(health))
        .route("/metrics", get(metrics))
        .with_state(shop)
}

async fn left(
    State(shop): State<Shop>,
    Path(product): Path<i64>,
) -> Result<Json<Quantity>, OrderError> {
    let quantity = shop.stock.quantity(product).await?;
    Ok(Json(Quantity { quantity: quantity.ok_or(OrderError::NoSuchProduct(product))? }))
}

async fn count(
    State(shop): State<Shop>,
    Path(product): Path<i64>,
    Json(Quantity { quantity }): Json<Quantity>,
) -> Result<StatusCode, OrderError> {
    inventory::count(&shop.stock, product, quantity).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn order(
    State(shop): State<Shop>,
    Path(product): Path<i64>,
    Json(Quantity { quantity }): Json<Quantity>,
) -> Result<(StatusCode, Json<Order>), OrderError> {
    let order = inventory::deduct(&shop.stock, product, quantity, shop.packing).await?;
    tracing::info!(product, quantity, left = order.left, fence = order.fence, "order taken");
    Ok((StatusCode::CREATED, Json(order)))
}

/// Health check for a load balancer: asks the lock store about a lock that is never held.
async fn health(State(shop): State<Shop>) -> Result<&'static str, OrderError> {
    shop.locks.holder("health").await?;
    shop.stock.is_there().await?;
    Ok("ok\n")
}

async fn metrics(State(shop): State<Shop>) -> String {
    shop.metrics.render()
}

/// Runs each request in a tracing span, which its lock events belong to.
async fn traced(request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let span = tracing::info_span!("request", method = %request.method(), path);
    next.run(request).instrument(span).await
}
