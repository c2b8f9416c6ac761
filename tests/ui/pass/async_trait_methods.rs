#![deny(warnings)]

use std::sync::Arc;

use async_trait::async_trait;
use lockattr::{Error, LockManager, distributed_lock};

#[async_trait]
trait Shop: Send + Sync {
    fn name(&self) -> &str;

    #[distributed_lock(key = "shop:<self.name()>")]
    async fn open(&self) -> Result<String, Error> {
        Ok(lockattr::current().unwrap().key().to_owned())
    }

    async fn restock(&self, id: u64, names: &[&str]) -> Result<usize, Error>;

    async fn sell(self: Arc<Self>, quantity: u32) -> Option<u32>;
}

struct Corner;

#[async_trait]
impl Shop for Corner {
    fn name(&self) -> &str {
        "corner"
    }

    #[distributed_lock(key = "product:<id>")]
    async fn restock(&self, id: u64, names: &[&str]) -> Result<usize, Error> {
        assert_eq!(lockattr::current().unwrap().key(), format!("product:{id}"));
        tokio::task::yield_now().await;
        Ok(names.len())
    }

    #[distributed_lock(key = "sale:<self.name()>", on_busy = skip)]
    async fn sell(self: Arc<Self>, quantity: u32) -> Option<u32> {
        assert_eq!(lockattr::current().unwrap().key(), "sale:corner");
        Some(quantity)
    }
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    let shop: Arc<dyn Shop> = Arc::new(Corner);
    manager
        .scope(async move {
            assert_eq!(shop.open().await.unwrap(), "shop:corner");
            assert_eq!(shop.restock(42, &["tea", "salt"]).await.unwrap(), 2);
            assert_eq!(shop.sell(3).await, Some(3));
        })
        .await;
}
