//! Streams, by both kinds of return type.

use futures_util::stream::{self, BoxStream, Stream};
use lockattr::Error;

/// A desk in a region.
#[derive(Debug)]
pub struct Desk {
    region: String,
    rows: Vec<u32>,
}

impl Desk {
    /// All rows.
    #[lockattr::distributed_lock(key = "export:<self.region>")]
    pub fn rows(&self) -> impl Stream<Item = Result<u32, Error>> + Send {
        stream::iter(self.rows.iter().copied().map(Ok))
    }
}

/// Three of them.
#[lockattr::distributed_lock(key = "ticks", on_busy = skip)]
pub fn ticks() -> BoxStream<'static, u32> {
    Box::pin(stream::iter(0..3))
}
