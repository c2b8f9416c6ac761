#![deny(warnings, unreachable_pub)]

mod shop {
    pub(crate) mod stock {
        use lockattr::{Error, distributed_lock};

        #[distributed_lock(key = "product:<id>")]
        pub(in crate::pass::visibility::shop) async fn count(id: u64) -> Result<u64, Error> {
            Ok(id)
        }

        #[distributed_lock(key = "product:<id>")]
        pub(super) async fn restock(id: u64) -> Result<u64, Error> {
            count(id).await
        }
    }

    #[lockattr::distributed_lock(key = "shop")]
    pub(crate) async fn open() -> Result<u64, lockattr::Error> {
        Ok(stock::count(1).await? + stock::restock(2).await?)
    }
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = lockattr::LockManager::connect("memory://").await.unwrap();
    assert_eq!(manager.scope(shop::open()).await.unwrap(), 3);
}
