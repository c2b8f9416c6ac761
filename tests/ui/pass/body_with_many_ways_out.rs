#![deny(warnings)]

use lockattr::{Error, LockManager, distributed_lock};

type AnyError = Box<dyn std::error::Error + Send + Sync>;

#[distributed_lock(key = "way-out")]
async fn way_out(text: Option<&str>, limit: u32) -> Result<u32, AnyError> {
    let Some(text) = text else { return Ok(0) };
    let number: u32 = text.parse()?;
    let found = 'search: {
        for candidate in 0.. {
            if candidate == limit {
                return Err("too far".into());
            }
            if candidate == number {
                break 'search candidate;
            }
        }
        unreachable!()
    };
    let inner = async { if found == 1 { Err(Error::NoManager) } else { Ok(found) } };
    let closure = || -> Result<u32, AnyError> { Ok(text.parse::<u32>()?) };
    Ok(inner.await? + closure()?)
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    let calls = async {
        assert_eq!(way_out(None, 9).await.unwrap(), 0);
        assert_eq!(way_out(Some("4"), 9).await.unwrap(), 8);
        assert!(way_out(Some("tea"), 9).await.unwrap_err().is::<std::num::ParseIntError>());
        assert_eq!(way_out(Some("10"), 9).await.unwrap_err().to_string(), "too far");
        assert!(way_out(Some("1"), 9).await.unwrap_err().is::<Error>());
    };
    manager.scope(calls).await;
}
