#![deny(warnings)]

use std::pin::Pin;
use std::sync::Arc;

use lockattr::{Error, LockManager, distributed_lock};

struct Shop {
    locks: LockManager,
    name: &'static str,
}

impl Shop {
    #[distributed_lock(key = "shop:<self.name>", manager = &self.locks)]
    async fn owners(self: Arc<Self>) -> Result<usize, Error> {
        assert_eq!(lockattr::current().unwrap().key(), "shop:corner");
        Ok(Arc::strong_count(&self))
    }

    #[distributed_lock(key = "shop:<self.name>", manager = &self.locks)]
    async fn name(self: Pin<&mut Self>) -> Result<&'static str, Error> {
        Ok(self.name)
    }
}

#[tokio::test]
async fn compiles_and_runs() {
    let locks = LockManager::connect("memory://").await.unwrap();
    let shop = Arc::new(Shop { locks: locks.clone(), name: "corner" });
    assert_eq!(shop.clone().owners().await.unwrap(), 2);
    let mut pinned = Shop { locks, name: "pinned" };
    assert_eq!(Pin::new(&mut pinned).name().await.unwrap(), "pinned");
}
