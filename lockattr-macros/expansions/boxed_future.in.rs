//! A function that boxes its future itself, and returns early.

use std::future::{Future, ready};
use std::pin::Pin;

use lockattr::Error;

/// A future under another name.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Counts.
#[derive(Debug)]
pub struct Counter(u64);

impl Counter {
    /// Adds `more`.
    #[lockattr::distributed_lock(key = "counter:<self.0>")]
    pub fn add(
        &mut self,
        more: u64,
    ) -> Pin<Box<dyn Future<Output = Result<u64, Error>> + Send + '_>> {
        let count = &mut self.0;
        if more == 0 {
            return Box::pin(ready(Ok(*count)));
        }
        Box::pin(async move {
            *count += more;
            Ok(*count)
        })
    }
}

/// Half of it.
#[lockattr::distributed_lock(key = "half:<of>")]
pub fn half(of: &u64) -> BoxFuture<'_, Result<u64, Error>> {
    Box::pin(ready(Ok(of / 2)))
}
