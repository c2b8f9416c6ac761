//! Passwords that rotate while programs lock.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use lockattr::store::Credentials;
use lockattr::{Error, LockManagerBuilder};
use lockattr_tests::Engine;

use super::*;

/// A server whose user `locks` needs a password.
async fn server() -> PostgresServer {
    let server = PostgresServer::start().await;
    server.run("create role locks login superuser password 'secret 0'").await;
    server.admit("host all locks 127.0.0.1/32 scram-sha-256").await;
    server
}

/// Changes the password, and ends all sessions that were opened with the old one.
async fn rotate(server: &PostgresServer, current: &Mutex<String>, round: usize) {
    let password = format!("secret {round}");
    server.run(&format!("alter role locks password '{password}'")).await;
    *current.lock().unwrap() = password;
    let cut = "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'locks'";
    server.run(cut).await;
}

fn builder(server: &PostgresServer, query: &str) -> LockManagerBuilder {
    let slow = "connect_timeout=10s&response_timeout=10s&wait=60s";
    let url = with_query(&server.url().replace("lockattr@", "locks@"), slow);
    LockManager::builder().url(with_query(&url, query))
}

fn with_provider(builder: LockManagerBuilder, current: &Arc<Mutex<String>>) -> LockManagerBuilder {
    let current = current.clone();
    builder.credentials(move || {
        let password = current.lock().unwrap().clone();
        async move { Ok::<_, std::io::Error>(Credentials::password_only(password)) }
    })
}

/// Callers of two keys, on managers of their own, so that some wait for a notification while the
/// sessions are cut.
async fn locks_through_rotations(query: &str) {
    const ROUNDS: usize = 5;
    let (server, current) = (server().await, Arc::new(Mutex::new("secret 0".to_owned())));
    let stop = Arc::new(AtomicBool::new(false));
    let mut callers = Vec::new();
    for caller in 0..6 {
        let manager = with_provider(builder(&server, query), &current).connect().await.unwrap();
        let (stop, count) = (stop.clone(), Arc::new(AtomicUsize::new(0)));
        let counted = count.clone();
        let task = tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let acquired = manager.acquire(format!("key {}", caller % 2), LockOptions::new());
                let guard = acquired.await?;
                counted.fetch_add(1, Ordering::Relaxed);
                // The lock may have ended with its session. The next acquisition counts.
                guard.release().await.ok();
            }
            Ok::<_, Error>(())
        });
        callers.push((task, count));
    }
    for round in 1..=ROUNDS {
        let before: Vec<_> =
            callers.iter().map(|(_, count)| count.load(Ordering::Relaxed)).collect();
        rotate(&server, &current, round).await;
        let all_went_on = async || {
            callers.iter().zip(&before).all(|((task, count), before)| {
                task.is_finished() || count.load(Ordering::Relaxed) >= before + 3
            })
        };
        eventually(SOON * 3, "every caller has acquired again", all_went_on).await;
    }
    stop.store(true, Ordering::Relaxed);
    for (task, _) in callers {
        task.await.unwrap().unwrap_or_else(|error| panic!("{query}: {error:?}"));
    }
}

#[tokio::test]
async fn no_acquisition_fails_when_the_password_changes_and_all_sessions_are_cut() {
    locks_through_rotations("lock=lease").await;
}

#[tokio::test]
async fn no_session_lock_fails_when_the_password_changes_and_all_sessions_are_cut() {
    locks_through_rotations("lock=session").await;
}

#[tokio::test]
async fn a_manager_with_the_old_password_fails_once_its_sessions_are_cut() {
    let (server, current) = (server().await, Mutex::new("secret 0".to_owned()));
    for query in ["lock=lease", "lock=session"] {
        let old = current.lock().unwrap().replace(' ', "%20");
        let url = with_query(&server.url().replace("lockattr@", &format!("locks:{old}@")), query);
        let slow = "connect_timeout=10s&response_timeout=10s";
        let manager = LockManager::connect(&with_query(&url, slow)).await.unwrap();
        acquire(&manager, "a").await.release().await.unwrap();
        rotate(&server, &current, query.len()).await;
        // The first attempt may be on a session that has just been cut.
        let is_refused = async || {
            let refused = manager.acquire("a", LockOptions::new().retry(0)).await;
            let Err(Error::Store { source, .. }) = refused else { panic!("{query}: {refused:?}") };
            assert!(!format!("{source:?}").contains("secret"), "{source:?}");
            source.to_string().contains("password authentication failed")
        };
        eventually(SOON, "the old password is refused", is_refused).await;
    }
}

/// The provider may name another user, and its answer replaces what the URL says.
#[tokio::test]
async fn user_and_password_of_the_url_are_replaced() {
    let server = server().await;
    let url = with_query(&server.url(), "connect_timeout=10s&response_timeout=10s");
    let url = url.replace("lockattr@", "nobody:wrong@");
    let builder = LockManager::builder()
        .url(&url)
        .credentials(|| async { Ok::<_, std::io::Error>(Credentials::new("locks", "secret 0")) });
    acquire(&builder.connect().await.unwrap(), "a").await.release().await.unwrap();
}

#[tokio::test]
async fn a_provider_that_fails_or_hangs_is_named_and_what_it_says_is_not_shown() {
    let server = PostgresServer::start().await;
    let builder = LockManager::builder().url(with_query(&server.url(), "connect_timeout=300ms"));
    let fails = builder.clone().credentials(|| async {
        Err::<Credentials, _>(std::io::Error::other("no ticket for s3cret"))
    });
    let hangs = builder.credentials(|| async {
        std::future::pending::<Result<Credentials, std::io::Error>>().await
    });
    for (builder, expected) in [(fails, "provider failed"), (hangs, "provider has not answered")] {
        let refused = builder.connect().await.unwrap_err();
        let Error::Store { source, .. } = refused else { panic!("{refused:?}") };
        assert!(source.to_string().contains(expected), "{source}");
        assert!(!source.to_string().contains("s3cret"), "{source}");
    }
}
