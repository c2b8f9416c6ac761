//! Other holders, a lost lease and an outage: no server, and no waiting, because the clock is paused.

use axum::http::StatusCode;
use lockattr::testing::TestLocks;
use lockattr_axum_sqlx::App;
use sqlx::postgres::PgPoolOptions;
use tokio::join;

use crate::{COUNT, ORDER, ask};

/// A service whose database never answers: nothing here gets as far as a row.
fn service() -> (TestLocks, App) {
    let locks = TestLocks::new();
    let pool = PgPoolOptions::new().connect_lazy("postgres://nobody@127.0.0.1:1/none").unwrap();
    let app = App { pool, database_locks: locks.manager().clone() };
    (locks, app)
}

/// Red without: the attribute on the handler, or on `orders::place`.
#[tokio::test(start_paused = true)]
async fn a_contended_product_is_a_conflict_that_is_worth_another_try_soon() {
    for request in [COUNT, ORDER] {
        let (locks, app) = service();
        let other = locks.hold("product:7");
        let refused = ask(&app, locks.manager(), request).await;
        assert_eq!(refused, (StatusCode::CONFLICT, Some(1)), "{request:?}");
        other.release();
        locks.assert_nothing_left().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_store_that_is_away_is_no_conflict() {
    let (locks, app) = service();
    locks.cut();
    let refused = ask(&app, locks.manager(), ORDER).await;
    assert_eq!(refused, (StatusCode::SERVICE_UNAVAILABLE, Some(5)));
}

/// The order is somewhere between reading and writing.
#[tokio::test(start_paused = true)]
async fn a_lost_lock_is_not_worth_a_blind_retry() {
    let (locks, app) = service();
    let theft = async {
        locks.until_held("product:7").await;
        locks.steal("product:7").noticed()
    };
    let (lost, thief) = join!(ask(&app, locks.manager(), ORDER), theft);
    assert_eq!(lost, (StatusCode::INTERNAL_SERVER_ERROR, None));
    thief.release();
    locks.assert_nothing_left().await;
}
