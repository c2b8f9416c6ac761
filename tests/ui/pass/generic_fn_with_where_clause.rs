#![deny(warnings)]

use std::fmt::Display;

use lockattr::{Error, LockManager, distributed_lock};

trait Named {
    const NAME: &'static str;
}

struct Product(u32);

impl Named for Product {
    const NAME: &'static str = "product";
}

#[distributed_lock(key = "<T::NAME>:<id>")]
async fn load<T, Id, F>(id: Id, make: F) -> Result<(String, T), Error>
where
    T: Named,
    Id: Display + Clone,
    F: FnOnce(Id) -> T,
{
    let key = lockattr::current().unwrap().key().to_owned();
    Ok((key, make(id.clone())))
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    let (key, product) = manager.scope(load(42, Product)).await.unwrap();
    assert_eq!((key.as_str(), product.0), ("product:42", 42));
}
