//! What has ended is deleted by each process that is connected, whatever else it does.

use lockattr::{LockManager, LockOptions};
use lockattr_tests::{MariaDb, capture_events, eventually, with_query};
use mysql_async::prelude::Queryable;

use super::{Database, HOUR};

/// How often the connections of the process that sweeps ask whether a sweep is due.
const OFTEN: &str = "heartbeat=100ms";

/// Connections that ask only once.
const ONCE: &str = "heartbeat=1h";

const NOW: &str = "TIMESTAMPDIFF(MICROSECOND, '2024-01-01', UTC_TIMESTAMP(6))";

/// The locks of the program that are left, each with the numbers of its waiters and holders.
const LOCKS: &str = "SELECT CONCAT(name, ' ', waiting, ' ', holders) FROM lockattr_v2_locks \
                     WHERE seat = '' AND name NOT LIKE '%leader' ORDER BY name";

const LOCK_COUNT: &str = "SELECT COUNT(*) FROM lockattr_v2_locks \
                          WHERE seat = '' AND name NOT LIKE '%leader'";

impl Database {
    async fn on(server: MariaDb) -> Self {
        let name = server.database().await;
        Self { server: Box::leak(Box::new(server)), name }
    }

    /// Inserts so many locks with one exclusive holder, whose leases end in `ends` microseconds. Their
    /// names begin with `name`.
    async fn insert_locks(&self, name: &str, count: usize, ends: i64) {
        let numbers = "SELECT a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n AS n \
                       FROM digits AS a, digits AS b, digits AS c, digits AS d, digits AS e";
        self.execute("CREATE TABLE IF NOT EXISTS digits (n INT PRIMARY KEY)").await;
        let digits =
            "INSERT IGNORE INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)";
        self.execute(digits).await;
        let insert = format!(
            "INSERT INTO lockattr_v2_locks \
             SELECT UNHEX(SHA2(CONCAT('{name}', n), 256)), '', CONCAT('{name}', n), 'x', \
             CONCAT('done', LPAD(n, 28, '0')), 'value done=1', '', {NOW} + {ends}, 0, 1 \
             FROM ({numbers}) AS numbers WHERE n < {count}"
        );
        self.execute(&insert).await;
    }

    /// Each of these locks has two holders, one of which ends in `ends` microseconds, the other after
    /// an hour.
    async fn share_locks(&self, name: &str, ends: i64) {
        let hour = HOUR.as_micros();
        for (seat, ends) in [("first", ends.to_string()), ("second", hour.to_string())] {
            let insert = format!(
                "INSERT INTO lockattr_v2_locks SELECT id, '{seat}', name, 's', '{seat}', value, '', \
                 {NOW} + {ends}, 0, 1 FROM lockattr_v2_locks WHERE name LIKE '{name}%' AND seat = ''"
            );
            self.execute(&insert).await;
        }
        let main = format!(
            "UPDATE lockattr_v2_locks SET mode = 's', token = '', holders = 2 \
             WHERE name LIKE '{name}%' AND seat = ''"
        );
        self.execute(&main).await;
    }

    /// A process that is gone waits for each of these locks.
    async fn insert_waiters(&self, name: &str) {
        let insert = format!(
            "INSERT INTO lockattr_v2_queue SELECT id, 1, 'dead', 'value', 'gone:1', 'x', 0, 10000000, \
             {NOW} - 20000000, 1 FROM lockattr_v2_locks WHERE name LIKE '{name}%' AND seat = ''"
        );
        self.execute(&insert).await;
        let wait = format!(
            "UPDATE lockattr_v2_locks SET waiting = waiting + 1 WHERE name LIKE '{name}%' AND seat = ''"
        );
        self.execute(&wait).await;
    }

    async fn insert_messages(&self, listener: &str, count: usize) {
        let insert = format!(
            "INSERT INTO lockattr_v2_notifications SELECT '{listener}', \
             a.n + 10 * b.n + 100 * c.n + 1000 * d.n, '', 'wanted lock:a' \
             FROM digits AS a, digits AS b, digits AS c, digits AS d \
             WHERE a.n + 10 * b.n + 100 * c.n + 1000 * d.n < {count}"
        );
        self.execute(&insert).await;
    }

    /// As if 40 seconds had passed since the last sweep.
    pub(super) async fn sweep_is_due(&self) {
        self.execute("UPDATE lockattr_v2_sweep SET due = 0").await;
    }

    async fn locks(&self) -> Vec<String> {
        self.server.query(&self.name, LOCKS).await
    }

    /// Waits until no locks, queue entries and messages are left but these.
    async fn holds(&self, locks: &[&str], queued: i64, messages: i64) {
        let count = i64::try_from(locks.len()).unwrap();
        let left = async || {
            self.number(LOCK_COUNT).await == count
                && self.locks().await == locks
                && self.number("SELECT COUNT(*) FROM lockattr_v2_queue").await == queued
                && self.number("SELECT COUNT(*) FROM lockattr_v2_notifications").await == messages
        };
        eventually("only what lives is left", left).await;
    }
}

/// What a process does besides being connected.
#[derive(Debug, Clone, Copy)]
enum Calls {
    None,
    TryAcquire,
    Lead,
}

/// Starts the process that sweeps. Its calls end with it.
async fn process(database: &Database, calls: Calls) -> (LockManager, tokio::task::JoinSet<()>) {
    let (manager, mut tasks) = (database.manager(OFTEN).await, tokio::task::JoinSet::new());
    let caller = manager.clone();
    match calls {
        Calls::None => {}
        Calls::TryAcquire => drop(tasks.spawn(async move {
            loop {
                let guard = caller.try_acquire("leader", LockOptions::new()).await.unwrap();
                guard.expect("it is free").release().await.unwrap();
            }
        })),
        Calls::Lead => drop(tasks.spawn(async move {
            let term = |_term| std::future::pending::<()>();
            caller.lead("leader", LockOptions::new(), term).await.unwrap();
        })),
    }
    (manager, tasks)
}

async fn deletes_what_has_ended(database: &Database, calls: Calls) {
    let (_sweeps, mut tasks) = process(database, calls).await;
    let (holder, waiter) = (database.manager(ONCE).await, database.manager(ONCE).await);
    let held = holder.acquire("held", LockOptions::new()).await.unwrap();
    let waits = tokio::spawn(async move {
        waiter.acquire("held", LockOptions::new()).await.unwrap().release().await.unwrap();
    });
    database.has_queued(1).await;
    let hour = i64::try_from(HOUR.as_micros()).unwrap();
    for (name, ends) in [("ended ", -1), ("lives ", hour)] {
        let of = |kind: &str| format!("{name}{kind} ");
        let many = if ends < 0 { 24_000 } else { 1 };
        database.insert_locks(&of("done"), many, ends).await;
        database.insert_locks(&of("shared"), 1, ends).await;
        database.share_locks(&of("shared"), ends).await;
        database.insert_locks(&of("waited"), 300, ends).await;
        database.insert_waiters(&of("waited")).await;
    }
    // Its process listens.
    let mut listens = database.server.cli(&database.name).await;
    let listener = format!("{}:1", database.name);
    listens.query_drop(format!("DO GET_LOCK('lockattr:{listener}', 0)")).await.unwrap();
    database.insert_messages(&listener, 1).await;
    database.insert_messages("gone:1", 1_200).await;
    database.insert_messages("gone:2", 1).await;
    assert_eq!(database.number(LOCK_COUNT).await, 24_604, "{calls:?}");

    database.sweep_is_due().await;
    let live = (0..300).map(|n| format!("lives waited {n} 0 1"));
    let others = ["ended shared 0 0 1", "lives done 0 0 1", "lives shared 0 0 2", "lock:held 1 1"];
    let mut live: Vec<String> = others.map(str::to_owned).into_iter().chain(live).collect();
    live.sort();
    let live: Vec<&str> = live.iter().map(String::as_str).collect();
    database.holds(&live, 1, 1).await;
    let seats = "SELECT COUNT(*) FROM lockattr_v2_locks WHERE seat <> ''";
    assert_eq!(
        database.number(seats).await,
        3,
        "the holder of `ended shared` that lives, and both others"
    );

    held.ensure_held().unwrap();
    held.release().await.unwrap();
    waits.await.unwrap();
    tasks.shutdown().await;
    for table in ["locks", "queue", "notifications"] {
        database.execute(&format!("DELETE FROM lockattr_v2_{table}")).await;
    }
}

/// Red without: `Sweep` in the task of each connection.
#[tokio::test]
async fn what_has_ended_is_deleted_whatever_calls_a_process_makes() {
    let servers = [Some(MariaDb::with(&[]).await), MariaDb::newest_mysql(&[]).await];
    for server in servers.into_iter().flatten() {
        let database = Database::on(server).await;
        for calls in [Calls::None, Calls::TryAcquire, Calls::Lead] {
            deletes_what_has_ended(&database, calls).await;
        }
        database.server.kill();
    }
}

/// Red without: the row of `lockattr_v2_sweep`, which is locked during a step.
#[tokio::test]
async fn two_processes_sweep_each_part_once() {
    let database = Database::on(MariaDb::with(&[]).await).await;
    let _both = [database.manager(OFTEN).await, database.manager(OFTEN).await];
    database.insert_locks("ended ", 10_000, -1).await;
    let mut cli = database.server.cli(&database.name).await;
    // A trigger cannot be prepared. Only this test takes `due` back.
    for statement in [
        "CREATE TABLE steps (after_id VARBINARY(32))",
        "CREATE TRIGGER step AFTER UPDATE ON lockattr_v2_sweep FOR EACH ROW \
         IF NEW.due > OLD.due THEN INSERT INTO steps VALUES (NEW.next); END IF",
    ] {
        cli.query_drop(statement).await.unwrap();
    }
    database.sweep_is_due().await;
    database.holds(&[], 0, 0).await;
    let asks = async || {
        let calls = "SHOW GLOBAL STATUS LIKE 'Com_call_procedure'";
        database.server.query::<(String, u64)>(&database.name, calls).await[0].1
    };
    let before = asks().await;
    eventually("all have asked again", async || asks().await > before + 20).await;
    let steps = "SELECT COUNT(*) FROM steps";
    assert_eq!(database.number(steps).await, 10_000 / 100);
    assert_eq!(database.number("SELECT COUNT(DISTINCT after_id) FROM steps").await, 10_000 / 100);
    database.server.kill();
}

/// The process that swept has died halfway.
///
/// Red without: `next` in `sweep.sql`.
#[tokio::test]
async fn a_sweep_that_was_interrupted_goes_on_where_it_was() {
    let database = Database::new().await;
    let _sweeps = database.manager(OFTEN).await;
    database.insert_locks("ended ", 1_000, -1).await;
    let swept = "SELECT COUNT(*) FROM lockattr_v2_locks WHERE id <= REPEAT('\u{7f}', 32)";
    let of_dead = database.number(swept).await;
    assert!((1..1_000).contains(&of_dead), "{of_dead}");
    let halfway = "UPDATE lockattr_v2_sweep SET due = 0, next = REPEAT('\u{7f}', 32)";
    database.execute(halfway).await;
    let left = async || database.number("SELECT COUNT(*) FROM lockattr_v2_locks").await;
    eventually("the other half is gone", async || left().await <= of_dead).await;
    assert_eq!(left().await, of_dead, "it began again");
    database.sweep_is_due().await;
    database.holds_nothing().await;
}

/// Red without: `SKIP LOCKED` of the locks in `sweep.sql`.
#[tokio::test]
async fn a_sweep_passes_over_a_row_that_is_in_use() {
    let database = Database::new().await;
    let _sweeps = database.manager(OFTEN).await;
    database.insert_locks("ended ", 400, -1).await;
    let mut uses = database.server.cli(&database.name).await;
    uses.query_drop("START TRANSACTION").await.unwrap();
    let row =
        "SELECT mode FROM lockattr_v2_locks WHERE id = UNHEX(SHA2('ended 7', 256)) FOR UPDATE";
    let _mode: Option<String> = uses.query_first(row).await.unwrap();
    database.sweep_is_due().await;
    database.holds(&["ended 7 0 1"], 0, 0).await;
    uses.query_drop("ROLLBACK").await.unwrap();
    database.sweep_is_due().await;
    database.holds_nothing().await;
}

/// The sweep has read that both locks have ended, and a process acquires the second before the sweep
/// locks its row.
///
/// Red without: `lockattr_v2_expire` in `sweep.sql`, which reads again.
#[tokio::test]
async fn a_sweep_does_not_delete_a_lock_that_was_acquired_again() {
    let database = Database::new().await;
    let manager = database.manager(ONCE).await;
    let names = "SELECT name FROM (SELECT 'a' AS name UNION SELECT 'b') AS names \
                 ORDER BY SHA2(CONCAT('lock:', name), 256)";
    let names: Vec<String> = database.server.query(&database.name, names).await;
    let mut cli = database.server.cli(&database.name).await;
    for name in &names {
        let insert = format!(
            "INSERT INTO lockattr_v2_locks VALUES (UNHEX(SHA2('lock:{name}', 256)), '', 'lock:{name}', \
             'x', 'token', 'value', '', 0, 0, 1)"
        );
        cli.query_drop(insert).await.unwrap();
    }
    let (gate, first) = (format!("gate {}", database.name), &names[0]);
    for statement in [
        format!("DO GET_LOCK('{gate}', 0)"),
        // Such a statement cannot be prepared.
        format!(
            "CREATE TRIGGER gate BEFORE DELETE ON lockattr_v2_locks FOR EACH ROW \
             IF OLD.name = 'lock:{first}' THEN SET @passed = GET_LOCK('{gate}', 100); END IF"
        ),
    ] {
        cli.query_drop(statement).await.unwrap();
    }
    let _sweeps = database.manager(OFTEN).await;
    database.sweep_is_due().await;
    let waits = "SELECT COUNT(*) FROM information_schema.processlist \
                 WHERE state = 'User lock' AND db = DATABASE()";
    eventually("the sweep deletes the first", async || database.number(waits).await == 1).await;
    let held = manager.acquire(&names[1], LockOptions::new()).await.unwrap();
    cli.query_drop(format!("DO RELEASE_LOCK('{gate}')")).await.unwrap();
    database.holds(&[&format!("lock:{} 0 1", names[1])], 0, 0).await;
    let is_over = "SELECT COUNT(*) FROM lockattr_v2_sweep WHERE due > 0";
    eventually("the sweep is over", async || database.number(is_over).await == 1).await;
    held.ensure_held().unwrap();
    assert!(manager.holder(&names[1]).await.unwrap().is_some(), "it was deleted");
    cli.query_drop("DROP TRIGGER gate").await.unwrap();
    held.release().await.unwrap();
    database.holds_nothing().await;
}

/// Red without: `warn_once`.
#[tokio::test]
async fn a_process_that_may_not_delete_says_so_once() {
    let database = Database::on(MariaDb::with(&[]).await).await;
    let events = capture_events();
    // Creates the tables.
    drop(database.manager(ONCE).await);
    database.execute("CREATE USER looker IDENTIFIED BY 'pass'").await;
    let rights = format!("GRANT SELECT, INSERT, EXECUTE ON {}.* TO looker", database.name);
    database.execute(&rights).await;
    let url = database.url(OFTEN).replace("locker:s3cret@", "looker:pass@");
    let manager = LockManager::connect(with_query(&url, "connections=1")).await.unwrap();
    let asks = async || {
        let calls = "SHOW GLOBAL STATUS LIKE 'Com_call_procedure'";
        database.server.query::<(String, u64)>(&database.name, calls).await[0].1
    };
    database.sweep_is_due().await;
    let before = asks().await;
    eventually("it has asked again", async || asks().await > before + 5).await;
    assert!(manager.holder("a").await.unwrap().is_none(), "the connection still serves");
    let said = events.all();
    let said: Vec<_> = said.iter().filter(|it| it.text.contains("cannot delete")).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].text.contains("MIGRATION") && !said[0].text.contains("pass@"), "{said:?}");
    database.server.kill();
}
