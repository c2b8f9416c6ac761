#![deny(warnings)]

use async_trait::async_trait;
use lockattr::{Error, LockManager, distributed_lock};

struct Cart {
    id: u64,
    items: Vec<&'static str>,
    locks: LockManager,
}

fn key() -> String {
    lockattr::current().map_or_else(String::new, |lease| lease.key().to_owned())
}

#[distributed_lock(key = "cart:<self.id>", ttl = "30s", manager = &self.locks)]
impl Cart {
    /// Uses the block's key.
    #[distributed_lock]
    async fn add(&mut self, item: &'static str) -> Result<String, Error> {
        self.items.push(item);
        Ok(key())
    }

    /// Has its own keys, and the block's other options.
    #[distributed_lock(keys = ["stock:<item>", "shelf"], on_busy = skip)]
    async fn reserve(&self, item: &str) -> Option<String> {
        assert!(self.items.contains(&item));
        Some(key())
    }

    /// Not locked.
    fn total(&self) -> usize {
        assert_eq!(key(), "");
        self.items.len()
    }
}

#[async_trait]
trait Till {
    async fn pay(&self, cents: u64) -> Result<String, Error>;
}

#[distributed_lock(manager = &self.locks)]
#[async_trait]
impl Till for Cart {
    #[distributed_lock(key = "till:<cents>")]
    async fn pay(&self, cents: u64) -> Result<String, Error> {
        assert!(cents > 0);
        Ok(key())
    }
}

#[tokio::test]
async fn compiles_and_runs() {
    let locks = LockManager::connect("memory://").await.unwrap();
    let mut cart = Cart { id: 7, items: Vec::new(), locks };
    assert_eq!(cart.add("tea").await.unwrap(), "cart:7");
    assert_eq!(cart.reserve("tea").await.unwrap(), "shelf");
    assert_eq!(cart.total(), 1);
    assert_eq!(cart.pay(250).await.unwrap(), "till:250");
}
