#![deny(warnings)]

use std::error::Error as StdError;

use lockattr::{LockManager, distributed_lock};

#[distributed_lock(key = "number:<text>")]
async fn parse(text: &str) -> Result<u32, Box<dyn StdError + Send + Sync>> {
    if text.is_empty() {
        Err("nothing to parse")?;
    }
    Ok(text.parse()?)
}

#[distributed_lock(key = "number:<text>")]
async fn parse_local(text: &str) -> Result<u32, Box<dyn StdError>> {
    Ok(text.parse()?)
}

#[tokio::test]
async fn compiles_and_runs() {
    assert!(parse("42").await.unwrap_err().is::<lockattr::Error>());
    let manager = LockManager::connect("memory://").await.unwrap();
    assert_eq!(manager.scope(parse("42")).await.unwrap(), 42);
    assert_eq!(manager.scope(parse_local("42")).await.unwrap(), 42);
    let error = manager.scope(parse("tea")).await.unwrap_err();
    assert!(error.is::<std::num::ParseIntError>());
}
