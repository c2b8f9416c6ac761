//! The return types of functions that return a stream.

use std::fmt::Display;
use std::pin::Pin;

use futures_util::TryStreamExt;
use futures_util::stream::{self, BoxStream, LocalBoxStream, Stream, StreamExt, TryStream};
use lockattr::{Error, LockManager, LockOptions, distributed_lock};

use super::manager;

fn key() -> Result<String, Error> {
    Ok(lockattr::current().map_or_else(String::new, |lease| lease.key().to_owned()))
}

struct Shop {
    locks: LockManager,
    region: String,
}

impl Shop {
    #[distributed_lock(key = "shop:<self.region>", manager = &self.locks, lease = lease)]
    fn opaque(&self) -> impl Stream<Item = Result<String, Error>> + Send {
        let key = lease.key().to_owned();
        stream::once(async move { Ok(key) })
    }

    #[distributed_lock(key = "shop:<self.region>", manager = &self.locks)]
    fn boxed<'a>(&'a self) -> Pin<Box<dyn Stream<Item = Result<String, Error>> + Send + 'a>> {
        if self.region.is_empty() {
            return Box::pin(stream::empty());
        }
        Box::pin(stream::once(async { key() }))
    }

    #[distributed_lock(key = "shop:<self.region>", manager = &self.locks)]
    fn alias(&self) -> BoxStream<'_, Result<String, Error>> {
        stream::once(async { key() }).boxed()
    }

    #[distributed_lock(key = "shop:<self.region>", manager = &self.locks, on_busy = skip)]
    fn local(&self) -> LocalBoxStream<'_, String> {
        stream::once(async { key().unwrap() }).boxed_local()
    }

    #[distributed_lock(keys = ["shop:<self.region>", "<other>"], manager = &self.locks)]
    fn tries(&self, other: impl Display) -> impl TryStream<Ok = String, Error = Error> {
        stream::once(async { key() })
    }

    #[distributed_lock(key = "shop", manager = &self.locks, when = locked)]
    fn perhaps(&self, locked: bool) -> impl Stream<Item = Result<String, Error>> {
        stream::once(async { key() })
    }
}

fn is_send<T: Send>(sent: T) -> T {
    sent
}

#[tokio::test]
async fn every_stream_is_recognised_by_how_its_type_is_written() {
    let shop = Shop { locks: manager(), region: "eu".into() };
    let all = async |stream: BoxStream<'_, Result<String, Error>>| {
        stream.map(Result::unwrap).collect::<Vec<_>>().await
    };
    assert_eq!(all(is_send(shop.opaque()).boxed()).await, ["shop:eu"]);
    assert_eq!(all(is_send(shop.boxed())).await, ["shop:eu"]);
    assert_eq!(all(is_send(shop.alias())).await, ["shop:eu"]);
    assert_eq!(shop.local().collect::<Vec<_>>().await, ["shop:eu"]);
    let tried: Vec<_> = shop.tries("a").try_collect().await.unwrap();
    assert_eq!(tried, ["a"]);
    assert_eq!(all(shop.perhaps(true).boxed()).await, ["shop"]);
    assert_eq!(all(shop.perhaps(false).boxed()).await, [""]);
    assert!(shop.locks.try_acquire("shop:eu", LockOptions::new()).await.unwrap().is_some());
}

#[derive(Debug)]
enum Failure {
    Lock,
    Own(u32),
}

impl From<Error> for Failure {
    fn from(_: Error) -> Self {
        Self::Lock
    }
}

#[distributed_lock(key = "generic")]
fn generic<S, T>(rows: S) -> impl Stream<Item = Result<T, Failure>>
where
    S: Stream<Item = Result<T, Failure>>,
{
    rows
}

#[tokio::test]
async fn the_users_own_error_type_passes_through_and_carries_lock_errors() {
    let manager = manager();
    let rows = || stream::iter([Ok(1), Err(Failure::Own(2)), Ok(3)]);
    let items: Vec<_> = manager.scope(generic(rows()).collect()).await;
    assert!(matches!(&items[..], [Ok(1), Err(Failure::Own(2)), Ok(3)]), "{items:?}");
    // There is no manager in scope, so the stream has no lock.
    let items: Vec<_> = generic(rows()).collect().await;
    assert!(matches!(&items[..], [Err(Failure::Lock)]), "{items:?}");
}
