//! MariaDB: leases and session locks, compared with SQL sent by hand, in the same run.

use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use lockattr::{LockManager, LockOptions};
use lockattr_tests::MariaDb;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use crate::report::{Bar, Report};
use crate::taken::in_turn;

/// Short and in turn, because noise comes and goes.
const ROUND: Duration = Duration::from_millis(50);

/// Hand-offs in one round, and how long the next waiter may take to be queued.
const HAND_OFFS: usize = 10;
const IN_LINE: Duration = Duration::from_millis(3);

const KEYS: u64 = 64;

/// Two clients that acquire and release locks in one way.
enum Way {
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
    async fn ours(url: &str) -> Arc<Self> {
        let connect = async || LockManager::connect(url).await.expect("the server answers");
        Arc::new(Self::Ours([connect().await, connect().await]))
    }

    /// Acquires and releases an uncontended lock.
    async fn cycle(&self, key: u64) {
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
                connection.exec_drop(TAKE, (&key, owner)).await.expect("taken");
                connection.exec_drop(GIVE, (&key, owner)).await.expect("released");
            }
        }
    }

    /// From the release until the other client has the lock.
    async fn hand_off(&self) -> Duration {
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

/// In its own task, as a service handles a request.
async fn cycles(way: &Arc<Way>) -> Histogram<u64> {
    let way = way.clone();
    let work = async move {
        let mut taken = Histogram::new(3).expect("three digits");
        let (ends, mut key) = (Instant::now() + ROUND, 0);
        while Instant::now() < ends {
            let began = Instant::now();
            way.cycle(key % KEYS).await;
            taken.record(nanos(began.elapsed())).expect("it resizes");
            key += 1;
        }
        taken
    };
    tokio::spawn(work).await.expect("no panic")
}

async fn hand_offs(way: &Arc<Way>) -> Histogram<u64> {
    let way = way.clone();
    let work = async move {
        let mut taken = Histogram::new(3).expect("three digits");
        for _ in 0..HAND_OFFS {
            taken.record(nanos(way.hand_off().await)).expect("it resizes");
        }
        taken
    };
    tokio::spawn(work).await.expect("no panic")
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

pub(super) async fn measure(report: &mut Report, time: Duration) {
    report.row("mysql", "MariaDB: leases and session locks, beside its client by hand");
    let server = MariaDb::with(&[]).await;
    server.execute("mysql", "CREATE DATABASE bench").await;
    let table = "CREATE TABLE recipe (name VARBINARY(255) PRIMARY KEY, owner VARBINARY(32) NOT NULL, \
                 ends DATETIME(6) NOT NULL) ENGINE=InnoDB";
    server.execute("bench", table).await;
    let url = server.url_of("bench");
    let lease = Way::ours(&url).await;
    let session = Way::ours(&format!("{url}?lock=session")).await;
    let own = async || Arc::new(Mutex::new(server.cli("bench").await));
    let get_lock = Arc::new(Way::GetLock([own().await, own().await]));
    let recipe = Arc::new(Way::Table(own().await));

    let rounds = usize::try_from(time.as_nanos() / ROUND.as_nanos()).unwrap_or(3).max(3);
    let all = in_turn([&lease, &session, &get_lock, &recipe], rounds, cycles).await;
    let names = ["lockattr, lease", "lockattr, lock=session", "GET_LOCK by hand", "table by hand"];
    report.note("a free lock, taken and given back");
    for (taken, name) in all.iter().zip(names) {
        taken.note(report, name, 40);
    }
    let [by_lease, by_session, by_get_lock, by_table] = &all;
    let over_table = by_lease.over(by_table);
    report.bar("lease over a table by hand", over_table, "x", Bar::AtMost(1.3));
    let over_get_lock = by_session.over(by_get_lock);
    report.bar("lock=session over GET_LOCK by hand", over_get_lock, "x", Bar::AtMost(1.5));

    let rounds = rounds.min(40);
    let all = in_turn([&lease, &session, &get_lock], rounds, hand_offs).await;
    report.note("from one client to another that waits");
    for (taken, name) in all.iter().zip(names) {
        taken.note(report, name, 40);
    }
    let [by_lease, by_session, by_get_lock] = &all;
    let over_get_lock = by_session.over(by_get_lock);
    report.bar("hand-off: lock=session over GET_LOCK", over_get_lock, "x", Bar::AtMost(1.5));
    let over_get_lock = by_lease.over(by_get_lock);
    report.bar("hand-off: lease over GET_LOCK", over_get_lock, "x", Bar::AtMost(4.0));
}
