#![deny(warnings)]

use std::time::Duration;

use lockattr::{Error, LockManager, LockOptions, Mode, distributed_lock};

#[distributed_lock(key = "prices:<shop>", mode = shared)]
async fn report(shop: &str) -> Result<usize, Error> {
    Ok(shop.len())
}

#[distributed_lock(key = "prices:<shop>", mode = exclusive, on_busy = skip)]
async fn change(shop: &str) -> Result<Option<usize>, Error> {
    Ok(Some(shop.len()))
}

const SLOTS: u32 = 3;

#[distributed_lock(key = "partner", permits = SLOTS)]
async fn call() -> Result<(), Error> {
    Ok(())
}

struct Partner {
    slots: u32,
}

impl Partner {
    #[distributed_lock(key = "partner:<id>", permits = self.slots, hold_at_least = Duration::ZERO)]
    async fn call(&self, id: u64) -> Result<u64, Error> {
        Ok(id)
    }
}

#[tokio::test]
async fn compiles_and_runs() {
    let calls = async {
        assert_eq!(report("corner").await.unwrap(), 6);
        assert_eq!(change("corner").await.unwrap(), Some(6));
        call().await.unwrap();
        assert_eq!(Partner { slots: 2 }.call(7).await.unwrap(), 7);
        let refused = Partner { slots: 0 }.call(7).await;
        assert!(matches!(refused, Err(Error::InvalidOptions(_))));
    };
    LockManager::connect("memory://").await.unwrap().scope(calls).await;
    const REPORT: LockOptions = LockOptions::new().mode(Mode::Shared);
    const CALL: LockOptions = LockOptions::new().permits(3).hold_at_least(Duration::from_secs(1));
    drop((REPORT, CALL));
}
