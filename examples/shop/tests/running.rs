//! A running shop, and its servers.

use std::process::Command;

use lockattr_tests::{Node, PostgresServer, RedisServer, bare, eventually};
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use crate::customer::{Answer, count, order};

/// The servers of one test: its own Redis and its own database.
pub(crate) struct Servers {
    pub(crate) redis: RedisServer,
    pub(crate) url: String,
    pub(crate) database: String,
}

/// One instance of the shop.
pub(crate) struct Shop {
    pub(crate) process: Node,
    pub(crate) address: String,
}

impl Servers {
    pub(crate) async fn start() -> Self {
        let (url, database) = PostgresServer::shared().await.new_database().await;
        Self { redis: RedisServer::start().await, url, database }
    }

    /// An instance whose locks are in Redis, and that packs an order in `packing` milliseconds.
    pub(crate) async fn shop(&self, packing: u32) -> Shop {
        self.shop_with(packing, &[("LOCKATTR_URL", &self.redis.url())]).await
    }

    /// The same with these environment variables instead; without a `LOCKATTR_URL` its locks are in
    /// the database.
    pub(crate) async fn shop_with(&self, packing: u32, variables: &[(&str, &str)]) -> Shop {
        let mut command = Command::new(env!("CARGO_BIN_EXE_shop"));
        command.env_remove("LOCKATTR_URL").env_remove("SHOP_LOG");
        command.env("DATABASE_URL", bare(&self.url)).env("SHOP_LISTEN", "127.0.0.1:0");
        command.env("SHOP_PACKING", packing.to_string()).envs(variables.iter().copied());
        let mut process = Node::run(command);
        loop {
            let line = line(&process.line().await);
            if line["message"] == "listening" {
                let address = line["address"].as_str().expect("its address").to_owned();
                return Shop { process, address };
            }
        }
    }

    /// Sends an order for one of twenty items of product 7. Returns when it holds the product's
    /// lock.
    pub(crate) async fn order_under_way(&self, shop: &Shop) -> JoinHandle<Answer> {
        assert_eq!(count(&shop.address, 7, 20).await.status, 204);
        let address = shop.address.clone();
        let under_way = tokio::spawn(async move { order(&address, 7).await });
        let cli = self.redis.cli().await;
        let taken = async || !cli.keys("lock:product:7").await.is_empty();
        eventually("the order is being packed", taken).await;
        under_way
    }

    /// Orders one of twenty items of product 7, while another program executes a statement: the order reads the stock
    /// before that is committed, and writes afterwards.
    pub(crate) async fn order_while(&self, statement: &str) -> Answer {
        let shop = self.shop(0).await;
        assert_eq!(count(&shop.address, 7, 20).await.status, 204);
        let (other, watcher) = (self.client().await, self.client().await);
        other.batch_execute(&format!("begin; {statement}")).await.unwrap();
        let waits = "select 1 from pg_stat_activity
                     where wait_event_type = 'Lock' and datname = current_database()";
        let commits = async {
            let writes = async || watcher.query(waits, &[]).await.unwrap().len() == 1;
            eventually("the order writes the row", writes).await;
            other.batch_execute("commit").await.unwrap();
        };
        tokio::join!(order(&shop.address, 7), commits).0
    }

    pub(crate) async fn client(&self) -> Client {
        PostgresServer::shared().await.client_of(&self.database).await
    }

    /// The stock of a product, and the number of items in its orders.
    pub(crate) async fn stock_and_sold(&self, product: i64) -> (i32, i64) {
        let ask = "select quantity, (select coalesce(sum(quantity), 0) from shop_orders
                   where product = $1) from shop_stock where product = $1";
        let row = self.client().await.query_one(ask, &[&product]).await.unwrap();
        (row.get(0), row.get(1))
    }
}

impl Shop {
    /// Stops the shop. Returns the rest of its log, and checks that it exited with success.
    pub(crate) async fn end(mut self) -> Vec<Value> {
        self.process.interrupt_signal();
        let mut said = Vec::new();
        while said.last().is_none_or(|last: &Value| last["message"] != "goodbye") {
            said.push(line(&self.process.line().await));
        }
        assert!(self.process.finish().await.success());
        said
    }
}

pub(crate) fn line(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
