#![deny(warnings)]
#![allow(non_upper_case_globals, clippy::too_many_arguments)]

use async_trait::async_trait;
use lockattr::{Error, LockManager, distributed_lock};

/// A pattern of the expansion must not mean one of these.
#[allow(dead_code)]
mod constants {
    pub const error: u32 = 1;
    pub const outcome: u32 = 2;
    pub static output: u32 = 3;
    pub static value: u32 = 4;
    pub const future: u32 = 5;
    pub const entry: u32 = 6;
    pub const call: u32 = 7;
}
#[allow(unused_imports)]
use constants::*;

#[distributed_lock(key = "<__arg0>:<__arg1>", on_busy = return(Ok(__arg0 + lockattr_arg0)))]
async fn sum(
    __arg0: u32,
    __arg1: u32,
    (__arg2, _): (u32, u32),
    lockattr_arg0: u32,
    lockattr_arg2: u32,
    lockattr_rest2_0: u32,
    __self: u32,
) -> Result<u32, Error> {
    assert_eq!(lockattr::current().unwrap().key(), "1:2");
    Ok(__arg0 + __arg1 + __arg2 + lockattr_arg0 + lockattr_arg2 + lockattr_rest2_0 + __self)
}

#[distributed_lock(key = "plain:<__arg0>")]
fn plain(__arg0: u32, (_, __arg2): (u32, u32)) -> Result<u32, Error> {
    Ok(__arg0 + __arg2 + error)
}

#[distributed_lock(key = "boxed:<__arg0>")]
fn boxed(__arg0: u32) -> futures_util::future::BoxFuture<'static, Result<u32, Error>> {
    Box::pin(async move { Ok(__arg0 + future) })
}

#[distributed_lock(key = "stream:<__arg0>")]
fn stream(__arg0: u32) -> impl futures_util::Stream<Item = Result<u32, Error>> {
    futures_util::stream::once(async move { Ok(__arg0 + output) })
}

#[async_trait]
trait Shop {
    async fn restock(&self, __arg0: u32, __arg1: u32) -> Result<u32, Error>;
}

#[async_trait]
impl Shop for () {
    #[distributed_lock(key = "shop:<__arg1>")]
    async fn restock(&self, __arg0: u32, __arg1: u32) -> Result<u32, Error> {
        Ok(__arg0 + __arg1)
    }
}

#[tokio::test]
async fn compiles_and_runs() {
    use futures_util::TryStreamExt;

    let manager = LockManager::connect("memory://").await.unwrap();
    let works = async {
        assert_eq!(sum(1, 2, (3, 0), 4, 5, 6, 7).await.unwrap(), 28);
        assert_eq!(boxed(1).await.unwrap(), 6);
        assert_eq!(stream(1).try_collect::<Vec<_>>().await.unwrap(), [4]);
        assert_eq!(().restock(1, 2).await.unwrap(), 3);
    };
    manager.scope(works).await;
    let sum = tokio::task::spawn_blocking(move || manager.scope_blocking(|| plain(1, (2, 3))));
    assert_eq!(sum.await.unwrap().unwrap(), 5);
}
