//! A provider that hangs, fails, panics, or never repeats an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockattr::store::{Credentials, RedisStore, ServerOptions, redis};
use lockattr::{LockManager, LockOptions};
use lockattr_tests::{Fault, Proxy, RedisServer, assert_nothing_left, eventually, in_time, skip};

use super::heartbeat::{clients, cycle, often_asked, two_users};
use crate::provider::{Provider, Reply};
use crate::redis::describe;
use crate::redis::own_client::manager;

fn answer(user: &str, password: &str) -> Reply {
    Reply::Answer(Credentials::new(user, password))
}

fn asks(server: &RedisServer, options: ServerOptions, provider: &Provider) -> LockManager {
    let client = redis::Client::open(server.url()).unwrap();
    manager(RedisStore::from_client(client, options.credentials(provider.function())))
}

/// Red without: the `timeout` and the `catch_unwind` in `CredentialsProvider::current`; with the
/// provider inside the server's limit, it is reported as a dead server.
#[tokio::test]
async fn a_provider_that_hangs_or_panics_is_named_and_asked_again() {
    let server = two_users().await;
    for (reply, says) in [(Reply::Hang, "has not answered"), (Reply::Panic, "panicked")] {
        let provider = Provider::new(reply);
        // A provider that hangs does so for as long.
        let options = often_asked().connect_timeout(Duration::from_secs(1));
        let manager = asks(&server, options, &provider);
        let refused = manager.acquire("a", LockOptions::new().retry(0)).await;
        let text = describe(&refused.unwrap_err());
        assert!(text.contains("the credentials provider") && text.contains(says), "{text}");
        assert!(!text.contains("no connection") && !text.contains("s3cret"), "{text}");
        provider.set(answer("one", "s3cret-1"));
        cycle(&manager).await;
    }
}

/// Red without: the `catch_unwind` in `CredentialsProvider::current`.
#[tokio::test]
async fn a_provider_that_panics_at_a_heartbeat_costs_no_connection() {
    let server = two_users().await;
    let (cli, provider) = (server.cli().await, Provider::new(answer("one", "s3cret-1")));
    let manager = asks(&server, often_asked(), &provider);
    let held = manager.acquire("held", LockOptions::new()).await.unwrap();
    let before = clients(&cli).await;
    provider.set(Reply::Panic);
    let asked = provider.asked();
    eventually("some heartbeats", async || {
        cycle(&manager).await;
        provider.asked() > asked + 3
    })
    .await;
    assert_eq!(before, clients(&cli).await);
    held.release().await.unwrap();
    drop(manager);
    assert_nothing_left(&server).await;
}

/// Red without: `verified.put` in `renew_login`.
#[tokio::test]
async fn a_connection_is_replaced_with_the_login_that_was_verified_though_the_provider_fails() {
    let server = two_users().await;
    let (cli, provider) = (server.cli().await, Provider::new(answer("one", "s3cret-1")));
    let (current, rest) = (provider.function(), provider.clone());
    let options = often_asked().credentials(move || {
        let reply = current();
        // It answers once more, at a heartbeat, and then it fails.
        if rest.is_next("two") {
            rest.set(Reply::Fail);
        }
        reply
    });
    let client = redis::Client::open(server.url()).unwrap();
    let manager = manager(RedisStore::from_client(client, options));
    cycle(&manager).await;
    provider.set(answer("two", "s3cret-2"));
    eventually("it has logged in as `two`", async || {
        let held = manager.acquire("a", LockOptions::new().retry(0)).await;
        held.expect("the login is verified").release().await.unwrap();
        let now = clients(&cli).await;
        now.len() == 1 && now[0].1 == "two"
    })
    .await;
    cycle(&manager).await;
    drop(manager);
    assert_nothing_left(&server).await;
}

/// A client whose provider never repeats an answer, and what else it does when it is asked.
fn never_the_same(
    url: &str,
    count: &Arc<AtomicUsize>,
    when_asked: impl Fn(usize) + Send + Sync + 'static,
) -> LockManager {
    let count = count.clone();
    LockManager::builder()
        .url(url)
        .credentials(move || {
            let nth = count.fetch_add(1, Ordering::Relaxed) + 1;
            when_asked(nth);
            async move { Ok::<_, std::io::Error>(Credentials::new("one", format!("wr0ng-{nth}"))) }
        })
        .build()
        .unwrap()
}

/// Red without: the count of questions in `log_in`.
#[tokio::test]
async fn a_provider_that_never_repeats_an_answer_is_asked_twice() {
    let (server, count) = (two_users().await, Arc::default());
    let manager = never_the_same(&server.url(), &count, |_| {});
    let refused = manager.acquire("a", LockOptions::new().retry(0)).await;
    let text = describe(&refused.unwrap_err());
    assert!(text.contains("WRONGPASS") && !text.contains("wr0ng"), "{text}");
    assert_eq!(count.load(Ordering::Relaxed), 2);
}

/// Red without: `refusal` in `log_in`.
#[tokio::test]
async fn a_refusal_is_reported_though_the_second_login_gets_no_answer() {
    let (server, count) = (two_users().await, Arc::default());
    let proxy = Arc::new(Proxy::start(server.addr()).await);
    let network = proxy.clone();
    let manager = never_the_same(&server.url_through(&proxy), &count, move |nth| {
        if nth == 2 {
            network.next("hello", Fault::HoldReply);
        }
    });
    let refused =
        tokio::spawn(
            async move { manager.acquire("a", LockOptions::new().retry(0)).await.map(drop) },
        );
    eventually("it logs in again", async || proxy.seen("hello") == 2).await;
    // More than a login may take: four times the connect timeout of a minute.
    skip(Duration::from_secs(5 * 60));
    let text = describe(&in_time(refused).await.unwrap().unwrap_err());
    assert!(text.contains("WRONGPASS") && !text.contains("wr0ng"), "{text}");
    assert_eq!(count.load(Ordering::Relaxed), 2);
}
