//! The store keeps the contract of all stores, on a real file with a connection for each process.

use std::process::Command;
use std::{fs, thread};

use lockattr::store::AnyStore;
use lockattr_contract::Fleet;
use lockattr_sqlite_store::SqliteStore;
use tempfile::TempDir;

/// A file for each check.
struct OnSqlite(TempDir);

impl Fleet for OnSqlite {
    async fn start() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn node(&self) -> AnyStore {
        AnyStore::new(SqliteStore::open(self.0.path().join("locks.db")).expect("a database"))
    }
}

lockattr_contract::store_contract!(OnSqlite, without: {
    wait_queue: "SQLite cannot notify another process",
    shared: "a lock is one row with one holder",
    permits: "a lock is one row with one holder",
    several_keys: "a lock is one row with one holder",
    companions: "only of use with a wait queue",
    downgrade: "there are no shared locks",
    done: "it has no such command",
});

/// The first of them creates the tables, and the others wait for it.
///
/// Red without: `busy_timeout` before the schema, or its repetition.
#[test]
fn processes_that_start_together_all_open_the_file() {
    for _ in 0..10 {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("locks.db");
        thread::scope(|scope| {
            let opened = [(); 8].map(|()| scope.spawn(|| SqliteStore::open(&path).map(drop)));
            for opened in opened {
                opened.join().expect("no panic").expect("the file");
            }
        });
    }
}

/// Red without: `IMMEDIATE`, or the condition on the value of another claim.
#[test]
fn four_processes_count_without_losing_a_step() {
    let directory = tempfile::tempdir().expect("a directory");
    let [database, file] = ["locks.db", "counter.txt"].map(|name| directory.path().join(name));
    let start = |_| {
        let mut count = Command::new(env!("CARGO_BIN_EXE_count"));
        count.args([&database, &file]).arg("25").spawn().expect("the program")
    };
    let processes: Vec<_> = (0..4).map(start).collect();
    for mut process in processes {
        assert!(process.wait().expect("its end").success());
    }
    assert_eq!(fs::read_to_string(file).expect("the counter"), "100");
}
