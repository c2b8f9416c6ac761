#![deny(warnings)]
#![allow(clippy::let_and_return)]

use lockattr::{Error, LockManager, distributed_lock};

fn here() -> Result<String, Error> {
    Ok(lockattr::current().unwrap().key().to_owned())
}

const STOCK: &str = "stock:{all}";

#[distributed_lock(key = STOCK)]
async fn constant() -> Result<String, Error> {
    here()
}

#[distributed_lock(key = name)]
async fn parameter(name: String) -> Result<(String, String), Error> {
    Ok((here()?, name))
}

#[distributed_lock(key = name)]
async fn unsized_parameter(name: &str) -> Result<String, Error> {
    here()
}

#[distributed_lock(key = if id > 9 { "many" } else { "few" })]
async fn choice(id: u64) -> Result<String, Error> {
    here()
}

#[distributed_lock(key = format_args!("{id}:{}", id + 1))]
async fn formatted(id: u64) -> Result<String, Error> {
    here()
}

#[distributed_lock(key = { let next = id + 1; next })]
async fn block(id: u64) -> Result<String, Error> {
    here()
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    let calls = async {
        assert_eq!(constant().await.unwrap(), "stock:{all}");
        assert_eq!(parameter("a:b".into()).await.unwrap(), ("a:b".into(), "a:b".into()));
        assert_eq!(unsized_parameter("%").await.unwrap(), "%");
        assert_eq!(choice(10).await.unwrap(), "many");
        assert_eq!(formatted(1).await.unwrap(), "1:2");
        assert_eq!(block(1).await.unwrap(), "2");
    };
    manager.scope(calls).await;
}
