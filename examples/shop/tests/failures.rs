//! Orders that fail, and the answers that customers get.

use lockattr::{LockManager, LockOptions};
use lockattr_tests::{assert_nothing_left, eventually};

use crate::customer::{Answer, count, get, order, try_order};
use crate::running::Servers;

#[track_caller]
fn check(got: &Answer, status: u16, error: &str, retry_after: Option<u64>) {
    assert_eq!((got.status, got.error().as_str()), (status, error), "{got:?}");
    assert_eq!(got.retry_after, retry_after, "{got:?}");
}

#[tokio::test]
async fn the_status_says_what_is_wrong_with_an_order() {
    let servers = Servers::start().await;
    let shop = servers.shop(0).await;
    check(&order(&shop.address, 8).await, 404, "no_such_product", None);
    assert_eq!(count(&shop.address, 7, 0).await.status, 204);
    check(&order(&shop.address, 7).await, 409, "sold_out", None);
    check(&count(&shop.address, 7, -1).await, 422, "no_quantity", None);
    assert_nothing_left(&servers.redis).await;
}

/// Red without: the row of `Contended` in `OrderError::answer`.
#[tokio::test]
async fn the_customer_is_asked_to_retry_while_another_order_holds_the_product() {
    let servers = Servers::start().await;
    let shop = servers.shop(0).await;
    assert_eq!(count(&shop.address, 7, 20).await.status, 204);
    let somebody = LockManager::connect(servers.redis.url()).await.unwrap();
    let guard = somebody.acquire("product:7", LockOptions::new()).await.unwrap();
    // A store that does not answer within the wait is no product that is busy.
    let is_busy = async || {
        let got = try_order(&shop.address, 7).await;
        assert!(!got.text.contains("process"), "no business of a customer's: {got:?}");
        (got.status, got.error().as_str(), got.retry_after) == (409, "busy", Some(1))
    };
    eventually("the customer is asked to retry", is_busy).await;
    guard.release().await.unwrap();
    assert_eq!(order(&shop.address, 7).await.status, 201);
    assert_eq!(servers.stock_and_sold(7).await, (19, 1));
}

#[tokio::test]
async fn nothing_is_sold_while_the_lock_store_is_unavailable() {
    let servers = Servers::start().await;
    let shop = servers.shop(0).await;
    assert_eq!(count(&shop.address, 7, 20).await.status, 204);
    assert_eq!(get(&shop.address, "/health").await.status, 200);
    servers.redis.kill();
    check(&try_order(&shop.address, 7).await, 503, "unavailable", Some(5));
    check(&get(&shop.address, "/health").await, 503, "unavailable", Some(5));
    assert_eq!(get(&shop.address, "/products/7").await.status, 200, "reading needs no lock");
    assert_eq!(servers.stock_and_sold(7).await, (20, 0));
}

/// Red without: `on_lost = cancel`, the default, together with `lease.ensure_held()`: either is enough.
#[tokio::test]
async fn an_order_whose_lock_is_lost_is_not_written() {
    let servers = Servers::start().await;
    let shop = servers.shop(8_000).await;
    assert_eq!(count(&shop.address, 7, 20).await.status, 204);
    let address = shop.address.clone();
    let under_way = tokio::spawn(async move { order(&address, 7).await });
    let cli = servers.redis.cli().await;
    let taken = async || cli.query::<i64>(&["DEL", "lock:product:7"]).await == 1;
    eventually("an operator deletes the lock", taken).await;
    check(&under_way.await.unwrap(), 500, "lost", None);
    assert_eq!(servers.stock_and_sold(7).await, (20, 0));
}

/// Red without: `AND fence < $3` in `DEDUCT`.
#[tokio::test]
async fn an_order_is_refused_if_a_later_holder_wrote_the_row() {
    let servers = Servers::start().await;
    let later = format!("update shop_stock set quantity = 3, fence = {}", i64::MAX);
    check(&servers.order_while(&later).await, 500, "overtaken", None);
    assert_eq!(servers.stock_and_sold(7).await, (3, 0));
    assert_nothing_left(&servers.redis).await;
}

/// Red without: `AND quantity >= $2` in `DEDUCT`.
#[tokio::test]
async fn a_stock_that_another_program_emptied_refuses_the_order() {
    let servers = Servers::start().await;
    let empties = "update shop_stock set quantity = 0";
    check(&servers.order_while(empties).await, 500, "overtaken", None);
    assert_eq!(servers.stock_and_sold(7).await, (0, 0));
    assert_nothing_left(&servers.redis).await;
}
