//! Passwords that rotate while programs lock.

use lockattr::store::Credentials;
use lockattr::{Error, LockManagerBuilder};
use lockattr_tests::{Engine, Load, Release, Rotating};

use super::*;

/// A server whose user `locks` needs a password.
async fn server() -> PostgresServer {
    let server = PostgresServer::start().await;
    server.run("create role locks login superuser password 'secret 0'").await;
    server.admit("host all locks 127.0.0.1/32 scram-sha-256").await;
    server
}

/// The password of the user `locks` in this round.
fn password(round: usize) -> Credentials {
    Credentials::password_only(format!("secret {round}"))
}

/// Changes the password, and ends all sessions that were opened with the old one.
async fn rotate(server: &PostgresServer, current: &Rotating, round: usize) {
    server.run(&format!("alter role locks password 'secret {round}'")).await;
    current.set(password(round)).await;
    let cut = "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'locks'";
    server.run(cut).await;
}

fn builder(server: &PostgresServer, query: &str) -> LockManagerBuilder {
    LockManager::builder().url(server.url_with(query).replace("lockattr@", "locks@"))
}

/// Callers of two keys, on managers of their own, so that some wait for a notification while the
/// sessions are cut.
async fn locks_through_rotations(query: &str) {
    const ROUNDS: usize = 3;
    let (server, current) = (server().await, Rotating::new(password(0)));
    // The lock may have ended with its session. The next acquisition counts.
    let mut load = Load::new(LockOptions::new(), Release::Awaited);
    for caller in 0..6 {
        let builder = builder(&server, query).credentials(current.provider());
        load.add(&builder.connect().await.unwrap(), [format!("key {}", caller % 2)]);
    }
    for round in 1..=ROUNDS {
        rotate(&server, &current, round).await;
        load.goes_on(3).await;
    }
    load.stop().await.unwrap_or_else(|error| panic!("{query}: {error:?}"));
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
    let (server, current) = (server().await, Rotating::new(password(0)));
    for (round, query) in ["lock=lease", "lock=session"].into_iter().enumerate() {
        let old = format!("locks:secret%20{round}@");
        let manager = manager(&server.url_with(query).replace("lockattr@", &old)).await;
        acquire(&manager, "a").await.release().await.unwrap();
        rotate(&server, &current, round + 1).await;
        // The first attempt may be on a session that has just been cut.
        let is_refused = async || {
            let refused = manager.acquire("a", LockOptions::new().retry(0)).await;
            let Err(Error::Store { source, .. }) = refused else { panic!("{query}: {refused:?}") };
            assert!(!format!("{source:?}").contains("secret"), "{source:?}");
            source.to_string().contains("password authentication failed")
        };
        eventually("the old password is refused", is_refused).await;
    }
}

/// The provider may name another user, and its answer replaces what the URL says.
#[tokio::test]
async fn user_and_password_of_the_url_are_replaced() {
    let server = server().await;
    let url = server.url().replace("lockattr@", "nobody:wrong@");
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
