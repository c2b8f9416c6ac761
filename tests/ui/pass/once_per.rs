//! Functions whose key is done after a body that ended `Ok`.
#![deny(warnings)]

use std::cell::Cell;
use std::fmt::Display;
use std::time::Duration;

use lockattr::{Error, LockManager, distributed_lock};

thread_local! {
    static RUNS: Cell<u32> = const { Cell::new(0) };
}

fn ran() -> u32 {
    RUNS.with(|runs| {
        runs.set(runs.get() + 1);
        runs.get()
    })
}

#[distributed_lock(key = "invoices", once_per = "22h", wait = "0s", on_busy = skip)]
async fn invoices(fails: bool) -> Result<Option<u32>, Error> {
    if fails {
        return Err(Error::NoManager);
    }
    Ok(Some(ran()))
}

#[distributed_lock(key = "report", once_for = "<night>", on_busy = return(Ok(0)))]
async fn report<N: Display>(night: N) -> Result<u32, Error> {
    let _night = night;
    Ok(ran())
}

#[distributed_lock(key = "cleanup", once_per = period, on_busy = skip, manager = manager)]
fn cleanup(manager: &LockManager, period: Duration) {
    let _manager = manager;
    let _period = period;
    ran();
}

#[tokio::test]
async fn compiles_and_runs() -> Result<(), Error> {
    let manager = LockManager::connect("memory://").await?;
    let run = manager.scope(async {
        assert!(invoices(true).await.is_err());
        assert_eq!(invoices(false).await?, Some(1));
        assert_eq!(invoices(false).await?, None);
        assert_eq!(report("2026-11-20").await?, 2);
        assert_eq!(report("2026-11-20").await?, 0);
        assert_eq!(report(String::from("2026-11-21")).await?, 3);
        Ok(())
    });
    tokio::spawn(run).await.expect("it does not panic")
}

#[test]
fn a_plain_function_compiles_and_runs() -> Result<(), Error> {
    let manager = LockManager::connect_blocking("memory://")?;
    cleanup(&manager, Duration::from_secs(60));
    cleanup(&manager, Duration::from_secs(60));
    assert_eq!(ran(), 2);
    Ok(())
}
