#![deny(warnings)]

use std::pin::Pin;

use lockattr::{Error, LockManager, distributed_lock};

trait Shop {
    fn restock(&self, id: u64) -> Pin<Box<dyn Future<Output = Result<u64, Error>> + Send + '_>>;
}

struct Corner(u64);

impl Shop for Corner {
    #[distributed_lock(key = "product:<id>")]
    fn restock(&self, id: u64) -> Pin<Box<dyn Future<Output = Result<u64, Error>> + Send + '_>> {
        Box::pin(async move {
            assert_eq!(lockattr::current().unwrap().key(), "product:42");
            Ok(self.0 + id)
        })
    }
}

/// Recursive, so it cannot be an `async fn`.
#[distributed_lock(key = "tree")]
fn depth(levels: u32) -> Pin<Box<dyn Future<Output = Result<u32, Error>> + Send>> {
    if levels == 0 {
        return Box::pin(async { Ok(lockattr::current().unwrap().depth()) });
    }
    Box::pin(async move { depth(levels - 1).await })
}

fn assert_send<T: Send>(value: T) -> T {
    value
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    let shop: Box<dyn Shop> = Box::new(Corner(1));
    assert_eq!(manager.scope(assert_send(shop.restock(42))).await.unwrap(), 43);
    assert_eq!(manager.scope(assert_send(depth(2))).await.unwrap(), 3);
}
