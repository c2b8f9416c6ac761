//! The ways to acquire and release a lock in MySQL.

use std::sync::Arc;
use std::time::Duration;

use lockattr::{LockManager, LockOptions};
use lockattr_tests::MariaDb;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use crate::rates;

/// How long the next waiter may take to be queued.
const IN_LINE: Duration = Duration::from_millis(3);

/// The code of an error after which a statement is repeated: the server ended a deadlock.
const DEADLOCK: u16 = 1213;

pub(super) const TABLE: &str = "CREATE TABLE recipe (name VARBINARY(255) PRIMARY KEY, owner VARBINARY(32) NOT NULL, \
     ends DATETIME(6) NOT NULL) ENGINE=InnoDB";

/// Two clients that acquire and release locks in one way.
pub(super) enum Way {
    Ours([LockManager; 2]),
    /// `GET_LOCK` and `RELEASE_LOCK`.
    GetLock([Arc<Mutex<Conn>>; 2]),
    /// A table with a unique key, an owner and an expiry: a row is inserted or taken over, and
    /// deleted. It notifies no waiter, so there is no hand-off.
    Table(Arc<Mutex<Conn>>),
}

const TAKE: &str = "INSERT INTO recipe (name, owner, ends) VALUES (?, ?, NOW(6) + INTERVAL 10 SECOND) \
                    ON DUPLICATE KEY UPDATE owner = IF(ends < NOW(6), VALUES(owner), owner), \
                    ends = IF(owner = VALUES(owner), VALUES(ends), ends)";
const GIVE: &str = "DELETE FROM recipe WHERE name = ? AND owner = ?";

impl Way {
    pub(super) async fn ours(url: &str) -> Arc<Self> {
        let connect = async || LockManager::connect(url).await.expect("the server answers");
        Arc::new(Self::Ours([connect().await, connect().await]))
    }

    /// `connections` clients with the table.
    pub(super) async fn tables(server: &MariaDb, connections: usize) -> Vec<Arc<Self>> {
        let mut all = Vec::new();
        for _ in 0..connections {
            all.push(Arc::new(Self::Table(connection(server).await)));
        }
        all
    }

    pub(super) async fn get_lock(server: &MariaDb) -> Arc<Self> {
        Arc::new(Self::GetLock([connection(server).await, connection(server).await]))
    }

    /// Acquires and releases an uncontended lock.
    pub(super) async fn cycle(&self, key: u64) {
        let key = format!("key:{key}");
        match self {
            Self::Ours([manager, _]) => {
                let guard = manager.acquire(&key, LockOptions::new()).await.expect("free");
                guard.release().await.expect("ours");
            }
            Self::GetLock([connection, _]) => {
                let mut connection = connection.lock().await;
                get(&mut connection, &key).await;
                give(&mut connection, &key).await;
            }
            Self::Table(connection) => {
                let mut connection = connection.lock().await;
                let owner = "0123456789abcdef0123456789abcdef";
                execute(&mut connection, TAKE, (&key, owner)).await;
                execute(&mut connection, GIVE, (&key, owner)).await;
            }
        }
    }

    /// From the release until the other client has the lock.
    pub(super) async fn hand_off(&self) -> Duration {
        match self {
            Self::Ours([one, other]) => {
                let guard = one.acquire("hot", LockOptions::new()).await.expect("free");
                let other = other.clone();
                let next = tokio::spawn(async move {
                    let guard =
                        other.acquire("hot", LockOptions::new()).await.expect("handed over");
                    let had = Instant::now();
                    guard.release().await.expect("ours");
                    had
                });
                sleep(IN_LINE).await;
                let began = Instant::now();
                guard.release().await.expect("ours");
                next.await.expect("no panic") - began
            }
            Self::GetLock([one, other]) => {
                let mut connection = one.lock().await;
                get(&mut connection, "hot").await;
                let other = other.clone();
                let next = tokio::spawn(async move {
                    let mut connection = other.lock().await;
                    get(&mut connection, "hot").await;
                    let had = Instant::now();
                    give(&mut connection, "hot").await;
                    had
                });
                sleep(IN_LINE).await;
                let began = Instant::now();
                give(&mut connection, "hot").await;
                next.await.expect("no panic") - began
            }
            Self::Table(_) => Duration::ZERO,
        }
    }
}

impl rates::Way for Way {
    async fn hold(&self, key: u64) {
        self.cycle(key).await;
    }
}

/// Its statements are prepared once, and then only executed.
async fn connection(server: &MariaDb) -> Arc<Mutex<Conn>> {
    Arc::new(Mutex::new(server.cli("bench").await))
}

async fn execute(connection: &mut Conn, statement: &str, (key, owner): (&str, &str)) {
    loop {
        match connection.exec_drop(statement, (key, owner)).await {
            Ok(()) => return,
            Err(Error::Server(error)) if error.code == DEADLOCK => {}
            Err(error) => panic!("{statement}: {error}"),
        }
    }
}

async fn get(connection: &mut Conn, key: &str) {
    let got: Option<i64> =
        connection.exec_first("SELECT GET_LOCK(?, 10)", (key,)).await.expect("it");
    assert_eq!(got, Some(1));
}

async fn give(connection: &mut Conn, key: &str) {
    let gave: Option<i64> =
        connection.exec_first("SELECT RELEASE_LOCK(?)", (key,)).await.expect("it");
    assert_eq!(gave, Some(1));
}
