//! A password that rotates while locks are acquired.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use lockattr::store::Credentials;
use lockattr::{LockManager, LockOptions};
use lockattr_tests::eventually;
use mysql_async::prelude::Queryable;
use tokio::sync::Mutex;

use super::{Database, LIMIT};
use crate::provider::{Provider, Reply};

/// A user whose password is kept in a secret store, which does not answer while it changes it.
struct Rotating {
    database: Database,
    user: String,
    secret: Arc<Mutex<String>>,
}

impl Rotating {
    async fn new() -> Self {
        let database = Database::new().await;
        let (user, first) = (format!("rotates_{}", database.name), "s3cret-0".to_owned());
        database.execute(&format!("CREATE USER {user} IDENTIFIED BY '{first}'")).await;
        database.execute(&format!("GRANT ALL ON {}.* TO {user}", database.name)).await;
        Self { database, user, secret: Arc::new(Mutex::new(first)) }
    }

    fn url(&self, login: &str, settings: &str) -> String {
        self.database.url(settings).replace("locker:s3cret@", login)
    }

    async fn manager(&self, settings: &str) -> LockManager {
        let secret = self.secret.clone();
        LockManager::builder()
            .url(self.url(&format!("{}@", self.user), settings))
            .credentials(move || {
                let secret = secret.clone();
                async move {
                    let current = secret.lock().await.clone();
                    Ok::<_, std::io::Error>(Credentials::password_only(current))
                }
            })
            .connect()
            .await
            .expect("the first password is right")
    }

    /// Sets another password, and ends all connections of the user.
    async fn rotate(&self, nth: usize) {
        let mut secret = self.secret.lock().await;
        let next = format!("s3cret-{nth}");
        self.database.execute(&format!("ALTER USER {} IDENTIFIED BY '{next}'", self.user)).await;
        *secret = next;
        drop(secret);
        for id in self.connections().await {
            let mut cli = self.database.server.cli(&self.database.name).await;
            // Its end may have ended others.
            let _gone = cli.query_drop(format!("KILL {id}")).await;
        }
    }

    async fn connections(&self) -> Vec<u64> {
        let ours = "SELECT id FROM information_schema.processlist WHERE user = ";
        let ours = format!("{ours}'{}'", self.user);
        self.database.server.query(&self.database.name, &ours).await
    }
}

/// Acquires until it is stopped. Every acquire succeeds, whatever its key. A lock may be lost with
/// its connection, so releases may fail.
async fn acquires(
    manager: LockManager,
    key: String,
    stop: Arc<AtomicBool>,
    count: Arc<AtomicUsize>,
) {
    while !stop.load(Ordering::Relaxed) {
        let held = manager.acquire(&key, LockOptions::new().wait(LIMIT)).await;
        let held = held.unwrap_or_else(|error| panic!("not acquired: {error} {error:?}"));
        let _may_be_lost = held.release().await;
        count.fetch_add(1, Ordering::Relaxed);
    }
}

async fn rotates_under_load(settings: &str) {
    let user = Rotating::new().await;
    let old = user.url(&format!("{}:s3cret-0@", user.user), settings);
    drop(LockManager::connect(&old).await.expect("the first password is right"));
    let managers = [user.manager(settings).await, user.manager(settings).await];
    let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let load: Vec<_> = (0..6)
        .map(|nth| {
            let (manager, key) = (managers[nth % 2].clone(), format!("key {}", nth / 2 % 2));
            tokio::spawn(acquires(manager, key, stop.clone(), count.clone()))
        })
        .collect();
    for nth in 1..=4 {
        user.rotate(nth).await;
        let before = count.load(Ordering::Relaxed);
        let goes_on = async || {
            count.load(Ordering::Relaxed) > before + 20
                || load.iter().any(tokio::task::JoinHandle::is_finished)
        };
        eventually(LIMIT, "locks are acquired with the new password", goes_on).await;
    }
    stop.store(true, Ordering::Relaxed);
    for task in load {
        task.await.expect("no acquire fails");
    }
    // A store that keeps the old password cannot connect, so the test can fail.
    let refused = LockManager::connect(&old).await.unwrap_err();
    let text = format!("{refused} {refused:?}");
    assert!(text.contains("Access denied") && !text.contains("s3cret"), "{text}");
    drop(managers);
}

/// Red without: the provider in `Login::connect`.
#[tokio::test]
async fn no_acquire_fails_while_a_password_rotates() {
    rotates_under_load("").await;
}

#[tokio::test]
async fn no_acquire_of_a_connection_fails_while_a_password_rotates() {
    rotates_under_load("lock=session").await;
}

/// Red without: the second question in `Login::connect`.
#[tokio::test]
async fn a_password_that_changes_on_its_way_is_asked_for_again() {
    let user = Rotating::new().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let (name, counted) = (user.user.clone(), asked.clone());
    let url = user.url("", "");
    let manager = LockManager::builder()
        .url(url)
        .credentials(move || {
            let first = counted.fetch_add(1, Ordering::Relaxed) == 0;
            let password = if first { "0utdated" } else { "s3cret-0" };
            let credentials = Credentials::new(name.clone(), password);
            async move { Ok::<_, std::io::Error>(credentials) }
        })
        .connect()
        .await
        .unwrap();
    manager.acquire("a", LockOptions::new()).await.unwrap().release().await.unwrap();
    assert!(asked.load(Ordering::Relaxed) >= 2);
}

/// What the provider's error says may hold a secret, so only its source shows it.
#[tokio::test]
async fn a_provider_that_fails_is_named_and_is_not_quoted() {
    let user = Rotating::new().await;
    let outcome = LockManager::builder()
        .url(user.url("", ""))
        .credentials(|| async { Err::<Credentials, _>(std::io::Error::other("vault t0ken")) })
        .connect()
        .await;
    let text = outcome.unwrap_err().to_string();
    assert!(text.contains("credentials provider") && !text.contains("t0ken"), "{text}");
}

/// Red without: the `timeout` and the `catch_unwind` in `CredentialsProvider::current`; with the
/// provider inside the server's limit, it is reported as a dead server.
#[tokio::test]
async fn a_provider_that_hangs_or_panics_is_named_and_asked_again() {
    let user = Rotating::new().await;
    for (reply, says) in [(Reply::Hang, "has not answered"), (Reply::Panic, "panicked")] {
        let provider = Provider::new(reply);
        let manager = LockManager::builder()
            .url(user.url("", "").replace("connect_timeout=10s", "connect_timeout=2s"))
            .credentials(provider.function())
            .build()
            .unwrap();
        let once = manager.acquire("a", LockOptions::new().retry(0));
        let refused = tokio::time::timeout(LIMIT, once).await.expect("it is given up");
        let text = format!("{:?}", refused.unwrap_err());
        assert!(text.contains("the credentials provider") && text.contains(says), "{text}");
        assert!(!text.contains("no connection") && !text.contains("s3cret"), "{text}");
        provider.set(Reply::Answer(Credentials::new(user.user.clone(), "s3cret-0")));
        let options = LockOptions::new().wait(LIMIT);
        manager.acquire("a", options).await.unwrap().release().await.unwrap();
    }
}
