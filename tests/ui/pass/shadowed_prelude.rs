#![deny(warnings)]
#![allow(dead_code, non_camel_case_types)]

mod core {}
mod std {}
mod alloc {}

struct Option;
struct Result;
struct Ok;
struct Err;
struct Some;
struct None;
struct String;
struct Box;
struct Future;
struct Lease;
struct LockOptions;
struct Duration;
struct bool;
struct str;
struct u64;

trait Display {}
trait From {}
trait Into {}

macro_rules! concat {
    () => {};
}
macro_rules! module_path {
    () => {};
}

#[lockattr::distributed_lock(
    key = "product:<id>-",
    ttl = "5s",
    max_hold = "1m",
    retry = 3,
    wait = "1500us",
    renew = true,
    on_lost = ignore,
    release = background,
    lease = lease,
    on_busy = return(::core::result::Result::Ok(0))
)]
async fn restock(id: u32) -> ::core::result::Result<u32, ::lockattr::Error> {
    ::core::assert_eq!(lease.key(), "product:42-");
    ::core::result::Result::Ok(id)
}

#[lockattr::distributed_lock(key = "nightly", on_busy = skip)]
fn nightly() -> ::std::pin::Pin<::std::boxed::Box<dyn ::core::future::Future<Output = ()>>> {
    ::std::boxed::Box::pin(async {})
}

#[test]
fn compiles_and_runs() {
    concat!();
    module_path!();
    let runtime = ::tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let manager = ::lockattr::LockManager::connect("memory://").await.unwrap();
        ::core::assert_eq!(manager.scope(restock(42)).await.unwrap(), 42);
        manager.scope(nightly()).await;
    });
}
