//! Orders that succeed.

use lockattr_tests::{PostgresServer, assert_nothing_left, eventually};

use crate::customer::{Answer, count, get, order};
use crate::running::{Servers, Shop};

/// Orders one item of product 7 for each customer, half of them at either instance. Returns how
/// many got each status.
async fn rush(shops: &[Shop; 2], customers: usize) -> Vec<(u16, Option<String>, usize)> {
    let mut at_once = tokio::task::JoinSet::new();
    for customer in 0..customers {
        let address = shops[customer % 2].address.clone();
        at_once.spawn(async move { order(&address, 7).await });
    }
    let answer = |got: &Answer| (got.status, got.json()["error"].as_str().map(str::to_owned));
    let mut answers: Vec<_> = at_once.join_all().await.iter().map(answer).collect();
    answers.sort_unstable();
    answers.chunk_by(PartialEq::eq).map(|same| (same[0].0, same[0].1.clone(), same.len())).collect()
}

/// The entry for this many customers who found the stock sold out.
fn sold_out(customers: usize) -> (u16, Option<String>, usize) {
    (409, Some("sold_out".to_owned()), customers)
}

/// Red without: the attribute over `deduct`.
#[tokio::test]
async fn two_instances_never_sell_more_than_the_stock() {
    let servers = Servers::start().await;
    let shops = [servers.shop(5).await, servers.shop(5).await];
    assert_eq!(count(&shops[0].address, 7, 20).await.status, 204);
    assert_eq!(rush(&shops, 40).await, [(201, None, 20), sold_out(20)]);
    assert_eq!(servers.stock_and_sold(7).await, (0, 20));
    assert_eq!(get(&shops[1].address, "/products/7").await.json()["quantity"], 0);
    for shop in shops {
        shop.end().await;
    }
    assert_nothing_left(&servers.redis).await;
}

#[tokio::test]
async fn without_a_url_for_the_locks_they_are_stored_in_the_shops_database() {
    let servers = Servers::start().await;
    let shops = [servers.shop_with(5, &[]).await, servers.shop_with(5, &[]).await];
    assert_eq!(count(&shops[0].address, 7, 20).await.status, 204);
    assert_eq!(rush(&shops, 30).await, [(201, None, 20), sold_out(10)]);
    assert_eq!(servers.stock_and_sold(7).await, (0, 20));
    let postgres = PostgresServer::shared().await;
    let nothing = async || postgres.left_in(&servers.database, "public").await.is_empty();
    eventually("nothing is left", nothing).await;
}

/// Red without: the time that orders in progress have to finish.
#[tokio::test]
async fn an_order_in_progress_is_finished_when_the_shop_shuts_down() {
    let servers = Servers::start().await;
    let shop = servers.shop(1_000).await;
    let under_way = servers.order_under_way(&shop).await;
    let cli = servers.redis.cli().await;

    let said = shop.end().await;
    let got = under_way.await.unwrap();
    assert_eq!((got.status, got.json()["left"].as_i64()), (201, Some(19)), "{said:#?}");
    assert_eq!(servers.stock_and_sold(7).await, (19, 1));
    let left = cli.keys("lock:*").await;
    assert!(left.is_empty(), "left by a process that exited in order: {left:?}");
}
