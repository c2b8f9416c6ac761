//! Each form of the attribute, in three editions, under all lints of Clippy's `pedantic` and `nursery`:
//! a warning here would be one about code that the user did not write.
#![deny(warnings, clippy::all, clippy::pedantic, clippy::nursery)]
// Lints that a crate may choose, and that look at what a function returns and binds.
#![deny(clippy::shadow_same)]
#![deny(rust_2018_idioms, unused_qualifications, missing_docs)]
// Clippy has the same to say of these functions without the attribute.
#![allow(clippy::missing_errors_doc, clippy::must_use_candidate)]

use std::cell::Cell;
use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::{BoxFuture, LocalBoxFuture};
use futures_util::stream::{self, BoxStream, Stream};
use lockattr::{distributed_lock, Error, LockManager};

/// An error of the crate's own.
#[derive(Debug)]
pub struct OrderError;

impl From<Error> for OrderError {
    fn from(_: Error) -> Self {
        Self
    }
}

/// A free function with placeholders, and an early end.
#[distributed_lock(key = "product:<id>", ttl = "10s", retry = 10)]
pub async fn deduct(id: u64, quantity: u32) -> Result<u32, OrderError> {
    if quantity == 0 {
        return Err(OrderError);
    }
    tokio::task::yield_now().await;
    Ok(quantity)
}

/// Every option that can stand beside the others.
#[distributed_lock(
    keys = ["account:<from>", "account:<to>"],
    ttl = Duration::from_secs(u64::from(seconds)),
    retry = 3,
    retry_delay = "50ms",
    wait = "3s",
    renew = seconds > 1,
    max_hold = "5m",
    hold_at_least = "1ms",
    on_busy = return(Ok(0)),
    on_lost = error,
    on_unavailable = run_unlocked,
    reentrant = false,
    permits = 3,
    release = background,
    when = seconds > 0,
    manager = "orders",
)]
pub async fn transfer(from: &str, to: &str, seconds: u8) -> Result<u8, Error> {
    tokio::task::yield_now().await;
    Ok(seconds)
}

/// Patterns, parameters that the body does not mention, and underscores.
#[distributed_lock(key = "ship:<shop>", on_busy = skip)]
pub async fn ship((shop, _): (&str, u8), [first, ..]: [u8; 3], _unused: u64, mut count: u32) {
    count += u32::from(first);
    tracing::info!(count, "shipped");
    tokio::task::yield_now().await;
}

/// Generic, and with an `impl Trait`.
#[distributed_lock(key = "generic:<id>", mode = shared)]
pub async fn generic<T>(id: impl Display + Send, value: T) -> Result<T, Error>
where
    T: Clone + Send,
{
    tokio::task::yield_now().await;
    Ok(value)
}

/// A boxed future.
#[distributed_lock(key = "boxed:<name>")]
pub fn boxed<'a>(name: &'a str) -> Pin<Box<dyn Future<Output = Result<usize, Error>> + Send + 'a>> {
    Box::pin(async move { Ok(name.len()) })
}

/// A boxed future under its usual name.
#[distributed_lock(key = "alias:<name>")]
pub fn alias(name: &str) -> BoxFuture<'_, Result<usize, Error>> {
    Box::pin(async move { Ok(name.len()) })
}

/// A boxed future that stays on its thread.
#[distributed_lock(key = "local", on_busy = skip)]
pub fn local(count: &Cell<u32>) -> LocalBoxFuture<'_, ()> {
    Box::pin(async move { count.set(count.get() + 1) })
}

/// A future of an unnamed type.
#[distributed_lock(key = "opaque:<id>")]
pub fn opaque(id: u64) -> impl Future<Output = Result<u64, Error>> + Send {
    async move { Ok(id) }
}

/// A plain function.
#[distributed_lock(key = "plain:<id>", lease = lease)]
pub fn plain(id: u64, stock: &Cell<u32>) -> Result<u32, Error> {
    lease.ensure_held()?;
    stock.set(stock.get() + 1);
    Ok(stock.get())
}

/// A plain function that is skipped.
#[distributed_lock(key = "nightly", on_busy = skip)]
pub fn nightly() -> Option<u32> {
    Some(1)
}

/// A stream of an unnamed type.
#[distributed_lock(key = "rows:<region>", lease = lease)]
pub fn rows(region: String) -> impl Stream<Item = Result<u64, Error>> + Send {
    stream::once(async move { lease.ensure_held().map(|()| lease.fencing_token().into()) })
}

/// A boxed stream.
#[distributed_lock(key = "ticks", on_busy = skip)]
#[must_use]
pub fn ticks() -> BoxStream<'static, u32> {
    Box::pin(stream::iter(0..3))
}

/// Two locks, and a span.
#[distributed_lock(key = "outer:<id>")]
#[distributed_lock(key = "inner:<id>")]
#[tracing::instrument(skip(id))]
pub async fn nested(id: u64) -> Result<u64, Error> {
    tokio::task::yield_now().await;
    Ok(id)
}

/// Methods.
#[derive(Debug)]
pub struct Cart {
    id: u64,
    locks: LockManager,
}

#[distributed_lock(key = "cart:<self.id>", ttl = "30s", manager = &self.locks)]
impl Cart {
    /// By reference.
    #[distributed_lock]
    pub async fn look(&self) -> Result<u64, Error> {
        tokio::task::yield_now().await;
        Ok(self.id)
    }

    /// By mutable reference.
    #[distributed_lock(lease = lease)]
    pub async fn add(&mut self, more: u64) -> Result<u64, Error> {
        lease.ensure_held()?;
        self.id += more;
        Ok(self.id)
    }

    /// By value.
    #[distributed_lock]
    pub async fn end(self) -> Result<Self, Error> {
        tokio::task::yield_now().await;
        Ok(self)
    }

    /// By a pointer.
    #[distributed_lock]
    pub async fn share(self: Arc<Self>) -> Result<u64, Error> {
        tokio::task::yield_now().await;
        Ok(self.id)
    }

    /// Without a lock.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }
}

/// A trait.
#[async_trait]
pub trait Shop {
    /// Restocks.
    async fn restock(&self, id: u64, names: &[&str]) -> Result<usize, Error>;
}

#[async_trait]
impl Shop for Cart {
    #[distributed_lock(key = "restock:<id>", manager = &self.locks)]
    async fn restock(&self, id: u64, names: &[&str]) -> Result<usize, Error> {
        tokio::task::yield_now().await;
        Ok(names.len())
    }
}

/// A trait with `async fn`.
pub trait Desk {
    /// Closes.
    fn close(&self, ticket: u64) -> impl Future<Output = Result<u64, Error>> + Send;
}

impl Desk for Cart {
    #[distributed_lock(key = "desk:<ticket>")]
    async fn close(&self, ticket: u64) -> Result<u64, Error> {
        tokio::task::yield_now().await;
        Ok(ticket + self.id)
    }
}

macro_rules! locked {
    ($name:ident) => {
        /// Made by a macro.
        #[distributed_lock(key = "made:<id>")]
        pub async fn $name(id: u64) -> Result<u64, Error> {
            tokio::task::yield_now().await;
            Ok(id)
        }
    };
}

locked!(made);

/// A complex type, which is the trait's.
#[allow(clippy::type_complexity)]
pub trait Complex {
    /// Lists.
    fn lists(&self) -> Result<Vec<Vec<(u64, Vec<Vec<Option<(u8, Vec<u8>)>>>, Vec<[u8; 3]>)>>, Error>;
}

impl Complex for Cart {
    #[distributed_lock(key = "lists", on_busy = return(Ok(vec![])))]
    fn lists(&self) -> Result<Vec<Vec<(u64, Vec<Vec<Option<(u8, Vec<u8>)>>>, Vec<[u8; 3]>)>>, Error> {
        Ok(vec![])
    }
}

/// For a crate that writes every `return`.
#[allow(clippy::needless_return)]
#[deny(clippy::implicit_return)]
pub mod explicit {
    use super::{distributed_lock, Error};

    /// A plain function.
    #[distributed_lock(key = "plain")]
    pub fn plain() -> Result<u64, Error> {
        return Ok(1);
    }

    /// An `async fn`.
    #[distributed_lock(key = "awaited", on_busy = return(Ok(2)))]
    pub async fn awaited() -> Result<u64, Error> {
        tokio::task::yield_now().await;
        return Ok(1);
    }
}
