#![deny(warnings)]

use lockattr::{Error, LockManager, distributed_lock};

struct Order<T> {
    number: T,
}

impl<T: std::fmt::Display> Order<T> {
    const KIND: &'static str = "order";

    #[distributed_lock(key = "<Self::KIND>:<number>")]
    async fn open(number: T) -> Result<Self, Error> {
        assert_eq!(lockattr::current().unwrap().key(), "order:42");
        Ok(Self { number })
    }
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    assert_eq!(manager.scope(Order::open("42")).await.unwrap().number, "42");
}
