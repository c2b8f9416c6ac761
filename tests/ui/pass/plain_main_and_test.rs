#![deny(warnings)]

use lockattr::{LockManager, distributed_lock};

#[distributed_lock(key = "stock", manager = manager())]
#[test]
fn restocks() -> Result<(), lockattr::Error> {
    Ok(())
}

fn manager() -> &'static LockManager {
    static MANAGER: std::sync::OnceLock<LockManager> = std::sync::OnceLock::new();
    MANAGER.get_or_init(|| LockManager::builder().url("memory://").build().unwrap())
}

/// Runs one instance of the program at a time.
#[distributed_lock(key = "program", manager = manager(), on_busy = skip)]
fn main() {
    assert_eq!(lockattr::current().unwrap().key(), "program");
}

#[test]
fn compiles_and_runs() {
    main();
}
