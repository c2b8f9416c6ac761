//! The resource of several processes reports the damage that is done to it.

use std::time::Duration;

use lockattr::{LockManager, LockOptions};
use lockattr_history::Damage;
use lockattr_tests::ResourceFile;

fn judged(text: &str) -> (u64, Vec<Damage>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("resource");
    std::fs::write(&path, text).unwrap();
    ResourceFile::at(path).judged()
}

#[test]
fn entries_are_counted() {
    assert_eq!(judged("+ 0 5\n= 1 5\n+ 1 7\n+ 1 9\n= 2 9\n"), (2, vec![]));
}

#[test]
fn an_entry_that_was_written_twice_is_an_update_lost() {
    let (_, damage) = judged("+ 0 5\n+ 0 7\n= 1 7\n= 1 7\n");
    assert_eq!(damage, [Damage::LostUpdate { count: 1, writes: 2, by: 7, over: 7 }]);
}

#[test]
fn a_smaller_token_after_a_greater_is_seen() {
    let (_, damage) = judged("+ 0 7\n= 1 7\n+ 1 5\n");
    assert_eq!(damage, [Damage::StaleToken { token: 5, after: 7 }]);
}

#[tokio::test]
async fn two_holders_at_once_are_seen_by_the_first_to_return() {
    let directory = tempfile::tempdir().unwrap();
    let resource = ResourceFile::at(directory.path().join("resource"));
    let mut guards = Vec::new();
    for _ in 0..2 {
        // Two in-memory stores, so both guards hold the lock.
        let manager = LockManager::connect("memory://?ttl=1h").await.unwrap();
        guards.push(manager.acquire("a", LockOptions::new()).await.unwrap());
    }
    assert!(resource.add(&guards[1], Duration::ZERO).await.unwrap());
    let overlap = resource.add(&guards[0], Duration::ZERO).await.unwrap_err();
    assert!(overlap.to_string().contains("used the resource"), "{overlap}");
    let other = resource.watch(&guards[0], Duration::from_millis(100));
    let (other, added) = tokio::join!(biased; other, resource.add(&guards[1], Duration::ZERO));
    assert!(added.unwrap());
    assert!(other.unwrap_err().to_string().contains("used the resource"));
}
