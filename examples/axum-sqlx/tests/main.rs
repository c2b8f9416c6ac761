//! The service, in this process: with the test kit and without a server, and on a real PostgreSQL.

mod database;
mod kit;

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use axum::response::Response;
use lockattr::LockManager;
use lockattr_axum_sqlx::{App, router};
use tower::ServiceExt;

/// The status and the seconds of `Retry-After`.
type Answer = (StatusCode, Option<u32>);

const ORDER: (&str, &str, &str) = ("POST", "/products/7/orders", r#"{"quantity": 1}"#);
const COUNT: (&str, &str, &str) = ("PUT", "/products/7", r#"{"quantity": 20}"#);
const RESERVE: (&str, &str, &str) = ("POST", "/products/7/reservations", "");

/// Sends a request to the routes, with `locks` as the installed manager.
async fn ask(app: &App, locks: &LockManager, request: (&str, &str, &str)) -> Answer {
    let (method, path, body) = request;
    let request = Request::builder().method(method).uri(path);
    let request = request.header(header::CONTENT_TYPE, "application/json");
    let request = request.body(Body::from(body.to_owned())).unwrap();
    let response: Response = locks.scope(router(app.clone()).oneshot(request)).await.unwrap();
    let after = response.headers().get(header::RETRY_AFTER);
    let after = after.map(|seconds| seconds.to_str().unwrap().parse().unwrap());
    (response.status(), after)
}
