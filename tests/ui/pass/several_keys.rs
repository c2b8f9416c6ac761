#![deny(warnings)]

use lockattr::{Error, LockManager, distributed_lock};

#[derive(Clone, Copy)]
struct Account {
    id: u64,
}

/// Returns how many of the keys are held.
async fn held(manager: &LockManager, keys: &[&str]) -> Result<usize, Error> {
    let mut held = 0;
    for key in keys {
        held += usize::from(manager.holder(*key).await?.is_some());
    }
    Ok(held)
}

#[distributed_lock(
    keys = ["account:<from>", "account:<to.id>", format!("day:{day}")],
    manager = manager,
)]
async fn transfer(
    manager: &LockManager,
    from: u64,
    to: Account,
    day: String,
) -> Result<(usize, String), Error> {
    let keys = [format!("account:{from}"), format!("account:{}", to.id), format!("day:{day}")];
    Ok((held(manager, &keys.each_ref().map(String::as_str)).await?, day))
}

struct Desk {
    manager: LockManager,
}

impl Desk {
    #[distributed_lock(keys = ["desk", name], manager = &self.manager, ttl = "5s", wait = "1s")]
    async fn close(&self, name: &str) -> Result<usize, Error> {
        held(&self.manager, &["desk", name]).await
    }
}

const STOCK: &str = "stock";

#[distributed_lock(keys = [STOCK])]
async fn one() -> Result<(), Error> {
    Ok(())
}

macro_rules! locked {
    ($name:ident, $($key:expr),*) => {
        #[distributed_lock(keys = [$($key),*])]
        async fn $name(id: u64) -> Result<u64, Error> {
            Ok(id)
        }
    };
}

locked!(made, "stock", STOCK);

macro_rules! locked_list {
    ($name:ident, $keys:expr) => {
        #[distributed_lock(keys = $keys)]
        async fn $name() -> Result<(), Error> {
            Ok(())
        }
    };
}

locked_list!(made_of_a_list, ["stock", "shelf"]);

fn assert_send<T: Send>(value: T) -> T {
    value
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    let to = Account { id: 2 };
    let moved = assert_send(transfer(&manager, 1, to, "1 May".into())).await.unwrap();
    assert_eq!(moved, (3, "1 May".to_owned()));
    let moved = transfer(&manager, 2, to, "1 May".into()).await.unwrap();
    assert_eq!(moved.0, 3, "equal keys count once");
    let desk = Desk { manager: manager.clone() };
    assert_eq!(desk.close("till").await.unwrap(), 2);
    manager.scope(one()).await.unwrap();
    assert_eq!(manager.scope(made(3)).await.unwrap(), 3);
    manager.scope(made_of_a_list()).await.unwrap();
}
