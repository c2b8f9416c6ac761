#![deny(warnings)]

use std::borrow::Cow;

use lockattr::{Error, LockManager, distributed_lock};

#[distributed_lock(key = "name:<name>")]
async fn first_word(name: &str) -> Result<&str, Error> {
    Ok(name.split(' ').next().unwrap_or_default())
}

struct Shop {
    name: String,
}

impl Shop {
    #[distributed_lock(key = "shop:<self.name>")]
    async fn name(&self, polite: bool) -> Result<Cow<'_, str>, Error> {
        Ok(if polite { format!("the {}", self.name).into() } else { self.name.as_str().into() })
    }
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    let shop = Shop { name: "Corner Shop".to_owned() };
    assert_eq!(manager.scope(first_word(&shop.name)).await.unwrap(), "Corner");
    assert_eq!(manager.scope(shop.name(false)).await.unwrap(), "Corner Shop");
    assert_eq!(manager.scope(shop.name(true)).await.unwrap(), "the Corner Shop");
}
