//! The rights that a cluster needs, and what its URL may contain.

use lockattr::store::RedisStore;
use lockattr::{Error, LockManager};

use super::*;
use crate::redis::RIGHTS;

/// The additional rights for a cluster, from the docs of `RedisStore`.
const MORE_RIGHTS: &str = "+cluster|slots +asking +ssubscribe +sunsubscribe +spublish";

/// Red without: each of the rights but `+sunsubscribe`, which takes a thousand channels.
#[tokio::test]
async fn a_user_with_the_rights_of_the_docs_can_do_everything() {
    let rights = format!("{RIGHTS} {MORE_RIGHTS}");
    let node = RedisServer::builder().user("locker", "s3cret", &rights);
    let cluster = Cluster::builder().servers(node).start().await;
    let url = cluster.url().replace("://", "://locker:s3cret@");
    let first = LockManager::connect(&url).await.unwrap();
    let second = LockManager::connect(&url).await.unwrap();
    let holder = acquire(&first, "a").await;
    let waiter = waiter(&cluster, &second, "a", 1).await;
    let (slot, there) = (slot_of(&cluster, "a"), another_master(&cluster, "a").await);
    let from = cluster.begin_migration(slot, there).await;
    cluster.move_keys(slot, from, there).await;
    // The old node, which has nothing left of the lock, redirects the renewal.
    holder.extend(LONGER).await.unwrap();
    cluster.end_migration(slot, from, there).await;
    is_listened_to(there).await;
    holder.release().await.unwrap();
    granted(waiter).await.release().await.unwrap();
    let keys = first.acquire_all(["a", "b", "c"], LockOptions::new()).await.unwrap();
    assert!(first.holder("b").await.unwrap().is_some());
    keys.release().await.unwrap();
    drop((first, second));
    assert_no_trace(&cluster).await;
}

/// Red without: each of those checks.
#[test]
fn an_invalid_cluster_url_is_refused_with_a_message() {
    for (rest, sentence) in [
        ("h1,h2/2", "a cluster has no databases: leave the path out of its URL"),
        ("h1,h2?tls=maybe", "neither `true` nor `false`"),
        ("h1,h2?typo=1", "the URL sets an unknown option"),
        ("", "needs a host"),
    ] {
        match RedisStore::open(&format!("redis+cluster://{rest}")) {
            Err(Error::InvalidOptions(text)) => assert!(text.contains(sentence), "{rest}: {text}"),
            other => panic!("{rest}: {other:?}"),
        }
    }
}

/// Red without: showing the URL without its password.
#[tokio::test]
async fn no_password_is_shown() {
    let url = "redis+cluster://user:s3cret@127.0.0.1:1,127.0.0.1:2?connect_timeout=200ms";
    let store = RedisStore::open(url).unwrap();
    assert!(!format!("{store:?}").contains("s3cret"), "{store:?}");
    assert!(format!("{store:?}").contains("127.0.0.1:1,127.0.0.1:2"), "{store:?}");
    let error = LockManager::connect(url).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
}
