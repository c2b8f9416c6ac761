//! A function that returns `impl Future`.

use std::future::Future;

use lockattr::Error;

/// Doubles it.
#[lockattr::distributed_lock(key = "double:<of>")]
pub fn double(of: u64) -> impl Future<Output = Result<u64, Error>> + Send {
    let double = of * 2;
    async move { Ok(double) }
}
