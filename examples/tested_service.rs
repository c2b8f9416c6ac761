//! A service and its own tests: `cargo test -p lockattr-examples --example tested_service`.
//!
//! The tests need no Redis and no real time: `lockattr::testing` simulates other nodes, a lost
//! lease and an outage, and the clock is paused. `cargo run --example tested_service` sells an
//! item, with a store in memory, and prints the locks of the program for an operator.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockattr::{Error, FencingToken, LockManager, assert_held, distributed_lock, registry};
use tokio::time::sleep;

#[tokio::main]
#[allow(clippy::print_stdout)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    LockManager::connect("memory://").await?.install()?;
    let shop = Shop { stock: Stock::of(42, 10), warehouse: Duration::from_millis(10) };
    println!("{} are left", shop.sell(42, 3).await?);
    for lock in registry() {
        println!("{lock}");
    }
    Ok(())
}

#[derive(Debug)]
enum OrderError {
    SoldOut,
    /// A later holder of the lock has written already.
    Stale,
    Lock(Error),
}

impl fmt::Display for OrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SoldOut => f.write_str("sold out"),
            Self::Stale => f.write_str("another caller has sold meanwhile"),
            Self::Lock(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OrderError {}

impl From<Error> for OrderError {
    fn from(error: Error) -> Self {
        Self::Lock(error)
    }
}

/// Sells items from the stock.
struct Shop {
    stock: Stock,
    /// How long the warehouse takes to confirm.
    warehouse: Duration,
}

impl Shop {
    #[distributed_lock(key = "product:<product>", ttl = "10s", wait = "3s", lease = lease)]
    async fn sell(&self, product: u64, quantity: u32) -> Result<u32, OrderError> {
        let left = self.stock.left(product).checked_sub(quantity).ok_or(OrderError::SoldOut)?;
        sleep(self.warehouse).await;
        self.stock.write(product, left, lease.fencing_token())?;
        Ok(left)
    }
}

/// In place of a database table: it rejects a writer whose fencing token is out of date.
#[derive(Clone, Default)]
struct Stock {
    rows: Arc<Mutex<HashMap<u64, Row>>>,
}

#[derive(Clone, Copy, Default)]
struct Row {
    left: u32,
    fence: Option<FencingToken>,
}

impl Stock {
    fn of(product: u64, left: u32) -> Self {
        let stock = Self::default();
        stock.rows().insert(product, Row { left, fence: None });
        stock
    }

    fn left(&self, product: u64) -> u32 {
        self.rows().get(&product).map_or(0, |row| row.left)
    }

    fn write(&self, product: u64, left: u32, fence: FencingToken) -> Result<(), OrderError> {
        assert_held!("product:<product>", "{left} are left to write");
        let mut rows = self.rows();
        let row = rows.entry(product).or_default();
        if row.fence.is_some_and(|last| last >= fence) {
            return Err(OrderError::Stale);
        }
        *row = Row { left, fence: Some(fence) };
        Ok(())
    }

    fn rows(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Row>> {
        self.rows.lock().unwrap()
    }
}

#[cfg(test)]
mod tests {
    use lockattr::LostReason;
    use lockattr::testing::{Outcome, TestLocks};
    use tokio::join;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn shop(warehouse: Duration) -> (TestLocks, Shop) {
        (TestLocks::new(), Shop { stock: Stock::of(42, 10), warehouse })
    }

    #[tokio::test(start_paused = true)]
    async fn two_nodes_that_sell_at_once_sell_one_after_the_other() {
        let (locks, here) = shop(SECOND);
        let there = Shop { stock: here.stock.clone(), ..here };
        let node = locks.another_process();
        let (one, other) = join!(locks.scope(here.sell(42, 3)), node.scope(there.sell(42, 4)));
        assert_eq!((one.unwrap(), other.unwrap()), (7, 3));
        assert_eq!(locks.acquisitions()[1].waited, SECOND);
        locks.assert_nothing_left().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_product_that_another_caller_holds_for_long_is_not_sold() {
        let (locks, shop) = shop(SECOND);
        let _restocking = locks.hold("product:42");
        let refused = locks.scope(shop.sell(42, 3)).await;
        assert!(matches!(refused, Err(OrderError::Lock(Error::Contended { .. }))), "{refused:?}");
        assert_eq!(shop.stock.left(42), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_sale_whose_lock_is_lost_writes_nothing() {
        let (locks, shop) = shop(60 * SECOND);
        let theft = async {
            locks.until_held("product:42").await;
            locks.steal("product:42")
        };
        let (lost, thief) = join!(locks.scope(shop.sell(42, 3)), theft);
        let Err(OrderError::Lock(Error::Lost { reason, .. })) = lost else { panic!("{lost:?}") };
        assert_eq!(reason, LostReason::Taken);
        assert_eq!(shop.stock.left(42), 10);
        thief.release();
        locks.assert_nothing_left().await;
    }

    /// The lock is lost, the sale does not know it yet, and the next holder has written. Only the
    /// fencing token rejects the late write.
    #[tokio::test(start_paused = true)]
    async fn a_late_write_is_refused_by_its_token() {
        let (locks, slow) = shop(2 * SECOND);
        let fast = Shop { stock: slow.stock.clone(), warehouse: Duration::ZERO };
        let node = locks.another_process();
        let overtaken = async {
            locks.until_held("product:42").await;
            locks.steal("product:42").release();
            node.scope(fast.sell(42, 4)).await.unwrap()
        };
        let (stale, left) = join!(locks.scope(slow.sell(42, 3)), overtaken);
        assert!(matches!(stale, Err(OrderError::Lock(_) | OrderError::Stale)), "{stale:?}");
        assert_eq!((left, slow.stock.left(42)), (6, 6));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_sold_during_an_outage_and_sales_resume_after_it() {
        let (locks, shop) = shop(SECOND);
        locks.cut();
        let refused = locks.scope(shop.sell(42, 3)).await;
        assert!(matches!(refused, Err(OrderError::Lock(Error::Store { .. }))), "{refused:?}");
        locks.mend();
        assert_eq!(locks.scope(shop.sell(42, 3)).await.unwrap(), 7);
        locks.assert_nothing_left().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_product_is_locked_once_for_a_sale() {
        let (locks, shop) = shop(SECOND);
        locks.scope(shop.sell(42, 3)).await.unwrap();
        let [sale] = &locks.acquisitions()[..] else { panic!("{locks:#?}") };
        assert_eq!((sale.template, sale.held), (Some("product:<product>"), Some(SECOND)));
        assert_eq!(sale.outcome, Outcome::Released);
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "`product:42` is not held at")]
    async fn no_process_writes_without_the_lock() {
        let (locks, shop) = shop(SECOND);
        let guard = locks.manager().acquire("product:7", lockattr::LockOptions::new());
        let guard = guard.await.unwrap();
        let write = async { shop.stock.write(42, 0, guard.fencing_token()) };
        guard.scope(write).await.unwrap();
    }

    /// A change to a lock of this program has to be repeated here.
    #[test]
    fn the_registry_lists_the_locks_of_this_program() {
        let locks: Vec<_> = registry().iter().map(|lock| (lock.template, lock.options)).collect();
        let sell = [("ttl", "\"10s\""), ("wait", "\"3s\""), ("lease", "lease")];
        assert_eq!(locks, [("product:<product>", &sell[..])]);
    }
}
