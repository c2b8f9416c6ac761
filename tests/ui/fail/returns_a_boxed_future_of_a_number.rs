use std::pin::Pin;

use lockattr::distributed_lock;

#[distributed_lock(key = "stock")]
fn count() -> Pin<Box<dyn Future<Output = u32> + Send>> {
    Box::pin(async { 17 })
}

fn main() {}
