#![deny(warnings)]

use lockattr::{Error, LockManager, distributed_lock};

trait Shop {
    fn name(&self) -> &str;

    #[distributed_lock(key = "shop:<self.name()>")]
    #[allow(async_fn_in_trait)]
    async fn open(&self) -> Result<String, Error> {
        Ok(lockattr::current().unwrap().key().to_owned())
    }

    #[distributed_lock(key = "shop:<self.name()>")]
    #[allow(async_fn_in_trait)]
    async fn close(self) -> Result<Self, Error>
    where
        Self: Sized,
    {
        Ok(self)
    }

    #[distributed_lock(key = "shop:<self.name()>")]
    fn closed(&self) -> impl Future<Output = Result<bool, Error>> + Send
    where
        Self: Sync,
    {
        async move { Ok(self.name().is_empty()) }
    }
}

struct Corner(&'static str);

impl Shop for Corner {
    fn name(&self) -> &str {
        self.0
    }
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    manager
        .scope(async {
            assert_eq!(Corner("corner").open().await.unwrap(), "shop:corner");
            assert_eq!(Corner("corner").close().await.unwrap().0, "corner");
            assert!(!Corner("corner").closed().await.unwrap());
        })
        .await;
}
