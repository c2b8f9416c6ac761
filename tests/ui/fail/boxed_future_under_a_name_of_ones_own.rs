use std::pin::Pin;

use lockattr::{Error, distributed_lock};

type ShopBoxFuture<T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

#[distributed_lock(key = "stock")]
fn count() -> ShopBoxFuture<u32> {
    Box::pin(async { Ok(17) })
}

fn main() {}
