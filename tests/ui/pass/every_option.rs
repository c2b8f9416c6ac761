#![deny(warnings)]

use std::time::Duration;

use lockattr::{Error, LockManager, LockOptions, distributed_lock};

const TTL: Duration = Duration::from_secs(5);

#[distributed_lock(
    key = "{<shop>}:product:<id>",
    ttl = TTL,
    retry = tries * 2,
    retry_delay = "1ms",
    wait = TTL.mul_f32(0.5),
    renew = id != 0,
    max_hold = "1m 30s",
    hold_at_least = "1ms",
    on_busy = return(Err(Error::NoManager)),
    on_lost = error,
    on_unavailable = error,
    reentrant = shop.is_empty(),
    mode = exclusive,
    release = background,
    manager = locks,
    lease = lease,
    crate = ::lockattr,
)]
async fn restock(
    locks: &LockManager,
    shop: &str,
    id: u64,
    tries: u32,
) -> Result<(String, u32), Error> {
    assert!(lease.remaining() <= TTL);
    Ok((lease.key().to_owned(), tries))
}

#[distributed_lock(
    key = format!("product:{id}"),
    ttl = "1h",
    on_busy = error,
    on_lost = ignore,
    on_unavailable = run_unlocked,
    release = await,
    when = id > 40 && id < 50,
    permits = 2,
    manager = "spare",
)]
async fn locked(id: u64) -> Result<Option<u64>, Error> {
    Ok(lockattr::current().map(|_| id))
}

#[distributed_lock(keys = ["shelf:<id>", "shop"], manager = "spare", mode = shared)]
async fn count(id: u64) -> Result<u64, Error> {
    Ok(id)
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    let restocked = restock(&manager, "corner", 42, 3).await.unwrap();
    assert_eq!(restocked, ("{corner}:product:42".to_owned(), 3));
    let held = manager.acquire("{corner}:product:42", LockOptions::new()).await.unwrap();
    let refused = restock(&manager, "corner", 42, 3).await;
    assert!(matches!(refused, Err(Error::NoManager)));
    held.release().await.unwrap();

    manager.install_as("spare").unwrap();
    assert_eq!(locked(42).await.unwrap(), Some(42));
    assert_eq!(locked(1).await.unwrap(), None);
    assert_eq!(count(1).await.unwrap(), 1);
}
