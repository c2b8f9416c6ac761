#![deny(warnings)]
#![no_implicit_prelude]

#[::lockattr::distributed_lock(key = "product:<id>", ttl = "5s", when = id > 0)]
async fn restock(id: u64) -> ::core::result::Result<u64, ::lockattr::Error> {
    ::core::result::Result::Ok(id)
}

#[::core::prelude::v1::test]
fn compiles_and_runs() {
    let runtime = ::tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let manager = ::lockattr::LockManager::connect("memory://").await.unwrap();
        ::core::assert_eq!(manager.scope(restock(42)).await.unwrap(), 42);
    });
}
