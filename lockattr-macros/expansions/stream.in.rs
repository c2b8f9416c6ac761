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

/// The number of its lease, said by the stream itself; else zero.
#[lockattr::distributed_lock(key = "leased", lease = lease, on_busy = return(stream::iter(vec![Ok(0)])))]
pub fn leased() -> impl Stream<Item = Result<u64, Error>> {
    stream::once(async move { lease.ensure_held().map(|()| lease.fencing_token().into()) })
}
