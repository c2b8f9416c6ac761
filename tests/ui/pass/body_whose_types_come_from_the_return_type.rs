#![deny(warnings)]

use std::collections::BTreeMap;
use std::fmt::Display;

use lockattr::{Error, LockManager, distributed_lock};

#[distributed_lock(key = "stock")]
async fn collected(names: &[&str]) -> Result<BTreeMap<String, usize>, Error> {
    Ok(names.iter().map(|name| (name.to_string(), name.len())).collect())
}

#[distributed_lock(key = "stock")]
async fn coerced(many: bool) -> Result<Box<dyn Display + Send>, Error> {
    if many {
        return Ok(Box::new("many"));
    }
    Ok(Box::new(1))
}

#[distributed_lock(key = "stock", on_busy = skip)]
async fn coerced_slice() -> Option<&'static [u8]> {
    Some(&[1, 2, 3])
}

#[distributed_lock(key = "stock")]
async fn function(step: u32) -> Result<Box<dyn Fn(u32) -> u32>, Error> {
    Ok(Box::new(move |number| number + step))
}

#[distributed_lock(key = "stock")]
async fn pointer() -> Result<fn(u32) -> u32, Error> {
    Ok(|number| number + 1)
}

#[distributed_lock(key = "stock")]
async fn converted(number: u32) -> Result<u64, Box<dyn std::error::Error>> {
    match number {
        0 => Ok(Default::default()),
        1 => Err("one".into()),
        _ => Ok(number.into()),
    }
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    let calls = async {
        assert_eq!(collected(&["tea"]).await.unwrap()["tea"], 3);
        assert_eq!(coerced(true).await.unwrap().to_string(), "many");
        assert_eq!(coerced(false).await.unwrap().to_string(), "1");
        assert_eq!(coerced_slice().await.unwrap(), [1, 2, 3]);
        assert_eq!(function(2).await.unwrap()(40), 42);
        assert_eq!(pointer().await.unwrap()(41), 42);
        assert_eq!(converted(42).await.unwrap(), 42);
        assert!(converted(1).await.is_err());
    };
    manager.scope(calls).await;
}
