#![deny(warnings)]

mod toolbox {
    pub mod locks {
        pub use lockattr::*;
    }
}

// The expansion must not use this name.
mod lockattr {}

#[toolbox::locks::distributed_lock(
    crate = crate::pass::crate_path::toolbox::locks,
    key = "product:<id>",
    ttl = "5s",
    on_lost = error,
    release = background,
    lease = lease,
    on_busy = return(Ok(String::new()))
)]
async fn restock(id: u64) -> Result<String, toolbox::locks::Error> {
    Ok(format!("{} {id}", lease.key()))
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = toolbox::locks::LockManager::connect("memory://").await.unwrap();
    assert_eq!(manager.scope(restock(42)).await.unwrap(), "product:42 42");
}
