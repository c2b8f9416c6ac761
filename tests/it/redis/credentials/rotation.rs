//! The server's passwords and users change under load, and its connections are cut.

use lockattr::store::{Credentials, ServerOptions};
use lockattr::{Error, LockManager, LockOptions};
use lockattr_tests::{Cluster, RedisServer, Rotating, assert_nothing_left, eventually, skip};
use std::time::Duration;

use super::{cut, load, rotating, set_password};
use crate::redis::{RIGHTS, describe};

const TASKS: usize = 8;

fn builder(url: &str, rotating: &Rotating) -> lockattr::LockManagerBuilder {
    LockManager::builder().url(url).credentials(rotating.provider())
}

/// What is in flight on a cut connection has an unknown outcome, which the manager undoes and tries
/// again.
///
/// Red without: the question to the provider in `Config::credentials`, for each connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_acquisition_fails_while_a_password_rotates_and_connections_are_cut() {
    let server = RedisServer::builder().user("locks", "s3cret-0", RIGHTS).start().await;
    let (cli, rotating) = (server.cli().await, rotating("locks", "s3cret-0"));
    let manager = builder(&server.url(), &rotating).connect().await.unwrap();
    let load = load(&manager, TASKS);
    let mut cuts = 0;
    for round in 1..=12 {
        load.goes_on(200 / TASKS).await;
        let password = format!("s3cret-{round}");
        if round % 2 == 0 {
            // The server knows first: a connection that is cut meanwhile asks again.
            set_password(&cli, "locks", &password).await;
            cuts += cut(&cli, "locks").await;
            rotating.set(Credentials::new("locks", &password)).await;
        } else {
            rotating.set(Credentials::new("locks", &password)).await;
            set_password(&cli, "locks", &password).await;
            cuts += cut(&cli, "locks").await;
        }
    }
    load.goes_on(200 / TASKS).await;
    let acquired = load.stop().await.expect("no acquisition fails").acquired;
    assert!(acquired >= 2_600 && cuts >= 6, "{acquired} acquired, {cuts} connections cut");
    drop(manager);
    assert_nothing_left(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_acquisition_fails_while_users_are_replaced() {
    let server = RedisServer::builder().user("locks-0", "s3cret-0", RIGHTS).start().await;
    let (cli, rotating) = (server.cli().await, rotating("locks-0", "s3cret-0"));
    let manager = builder(&server.url(), &rotating).connect().await.unwrap();
    let load = load(&manager, TASKS);
    for round in 1..=8 {
        load.goes_on(200 / TASKS).await;
        let (user, password) = (format!("locks-{round}"), format!("s3cret-{round}"));
        let login = format!(">{password}");
        let words = ["ACL", "SETUSER", user.as_str(), "on", login.as_str()];
        let rights: Vec<_> = RIGHTS.split_whitespace().collect();
        let () = cli.query(&[&words[..], &rights].concat()).await;
        rotating.set(Credentials::new(&user, &password)).await;
        // Ends the connections of the old user.
        let old = format!("locks-{}", round - 1);
        assert_eq!(cli.query::<usize>(&["ACL", "DELUSER", &old]).await, 1);
    }
    load.goes_on(200 / TASKS).await;
    let acquired = load.stop().await.expect("no acquisition fails").acquired;
    assert!(acquired >= 1_800, "{acquired}");
    drop(manager);
    assert_nothing_left(&server).await;
}

/// The test above can fail: without a provider, the first cut connection is the last.
#[tokio::test]
async fn without_a_provider_a_cut_connection_is_the_last() {
    let server = RedisServer::builder().user("locks", "s3cret-0", RIGHTS).start().await;
    let cli = server.cli().await;
    let manager = LockManager::connect(&server.url_as("locks", "s3cret-0")).await.unwrap();
    let load = load(&manager, TASKS);
    load.goes_on(200 / TASKS).await;
    set_password(&cli, "locks", "s3cret-1").await;
    load.goes_on(200 / TASKS).await;
    assert!(cut(&cli, "locks").await > 0);
    is_refused(&manager).await;
    // Longer than any of them waits.
    skip(Duration::from_secs(3_600));
    assert!(load.stop().await.is_err(), "the load goes on without a valid password");
}

/// Waits until the manager knows that its connection has ended and its password is wrong.
async fn is_refused(manager: &LockManager) {
    eventually("it is refused", async || {
        let refused = manager.acquire("one more", LockOptions::new().retry(0)).await.unwrap_err();
        assert!(matches!(refused, Error::Store { .. }), "{refused:?}");
        let text = describe(&refused);
        assert!(!text.contains("s3cret"), "{text}");
        text.contains("WRONGPASS")
    })
    .await;
}

/// The provider may be the last to know: the manager goes on asking for as long as its callers wait.
#[tokio::test]
async fn an_acquisition_waits_until_the_provider_knows_the_password() {
    let server = RedisServer::builder().user("locks", "s3cret-0", RIGHTS).start().await;
    let (cli, rotating) = (server.cli().await, rotating("locks", "s3cret-0"));
    let manager = builder(&server.url(), &rotating).connect().await.unwrap();
    set_password(&cli, "locks", "s3cret-1").await;
    cut(&cli, "locks").await;
    is_refused(&manager).await;
    let waits = tokio::spawn({
        let manager = manager.clone();
        async move { manager.acquire("a", LockOptions::new()).await }
    });
    tokio::task::yield_now().await;
    rotating.set(Credentials::new("locks", "s3cret-1")).await;
    let held = waits.await.unwrap().expect("the next attempt has the new password");
    held.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_acquisition_fails_while_the_passwords_of_a_cluster_rotate() {
    let user = RedisServer::builder().user("locks", "s3cret-0", "~* &* +@all");
    let cluster = Cluster::builder().servers(user).start().await;
    let rotating = rotating("locks", "s3cret-0");
    let options = ServerOptions::new().credentials(rotating.provider());
    let seeds = cluster.nodes()[..2].iter().map(|node| format!("redis://{}", node.addr()));
    let manager = crate::redis::own_client::manager(lockattr::store::RedisStore::from_cluster(
        seeds, options,
    ));
    let load = load(&manager, TASKS);
    let mut cuts = 0;
    for round in 1..=5 {
        load.goes_on(200 / TASKS).await;
        let password = format!("s3cret-{round}");
        for node in cluster.nodes() {
            set_password(&node.cli().await, "locks", &password).await;
        }
        rotating.set(Credentials::new("locks", &password)).await;
        for node in cluster.nodes() {
            cuts += cut(&node.cli().await, "locks").await;
        }
    }
    load.goes_on(200 / TASKS).await;
    let acquired = load.stop().await.expect("no acquisition fails").acquired;
    assert!(acquired >= 1_200 && cuts >= 10, "{acquired} acquired, {cuts} connections cut");
    drop(manager);
    assert_nothing_left(&cluster).await;
}
