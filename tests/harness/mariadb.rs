//! A MariaDB or MySQL server: its data copied from a template, and a database for each test.

mod launch;
mod program;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mysql_async::prelude::{FromRow, Queryable};
use mysql_async::{Conn, Error, Params};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::eventually::Backoff;
use crate::port::Port;
use crate::process::Process;
use crate::{Engine, patient};
use launch::{PASSWORD, USER, connect};
use program::Program;

/// A `mariadbd` or a `mysqld` on a free loopback port, in its own directory. It is killed when this
/// value is dropped.
///
/// Commits survive a kill of the process, but are not synced to disk. The program is `mariadbd` on
/// the `PATH` or in `/usr/sbin`, or the one that the environment variable
/// `LOCKATTR_MARIADB_SERVER` names, which may be a `mysqld`: [`runs_mysql`](Self::runs_mysql)
/// returns which of the two it is.
#[derive(Debug)]
pub struct MariaDb {
    program: &'static Program,
    process: Mutex<Option<Process>>,
    port: Port,
    directory: TempDir,
    extra: Vec<String>,
}

impl MariaDb {
    /// Returns the server that all tests of a program share, each with its own database.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<MariaDb> = OnceCell::const_new();
        SHARED.get_or_init(Self::start_alone).await
    }

    /// Returns whether the tests run on MySQL, and not on MariaDB.
    ///
    /// # Panics
    ///
    /// If the program is missing, with the command that installs it.
    pub fn runs_mysql() -> bool {
        Program::chosen().is_mysql()
    }

    /// Starts a server with these options in addition to the usual ones.
    ///
    /// # Panics
    ///
    /// If the program is missing, with the command that installs it, or if it does not start.
    pub async fn with(options: &[&str]) -> Self {
        Self::of(Program::chosen(), options).await
    }

    /// Starts the MySQL that `LOCKATTR_NEWEST_MYSQL` names, with these options, whatever the other
    /// tests run on. Returns `None` if that is not set.
    ///
    /// # Panics
    ///
    /// If the program is not a MySQL, or does not start.
    pub async fn newest_mysql(options: &[&str]) -> Option<Self> {
        Some(Self::of(Program::newest_mysql()?, options).await)
    }

    async fn of(program: &'static Program, options: &[&str]) -> Self {
        let directory = TempDir::with_prefix("lockattr-").expect("a temporary directory");
        let extra: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let port = Port::free();
        let process = launch::launch(program, directory.path(), port.number(), &extra).await;
        Self { program, process: Mutex::new(Some(process)), port, directory, extra }
    }

    async fn start_alone() -> Self {
        Self::with(&[]).await
    }

    /// Creates an empty database and returns its name.
    pub async fn database(&self) -> String {
        static DATABASES: AtomicUsize = AtomicUsize::new(0);
        let name = format!("test_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        self.execute("mysql", &format!("CREATE DATABASE {name}")).await;
        name
    }

    /// Returns `127.0.0.1:PORT`.
    pub fn addr(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the URL of a store in this database.
    pub fn url_of(&self, database: &str) -> String {
        patient(&format!("mysql://{USER}:{PASSWORD}@{}/{database}", self.addr()))
    }

    /// Opens a connection of the harness' own, to inspect and to change the server.
    ///
    /// # Panics
    ///
    /// If it cannot be opened. So do all methods that use one.
    pub async fn cli(&self, database: &str) -> Conn {
        let connected = connect(self.port.number(), database).await;
        connected
            .unwrap_or_else(|error| panic!("the harness cannot connect to the server: {error}"))
    }

    /// Returns the rows of one query.
    pub async fn query<R: FromRow + Send + 'static>(&self, database: &str, query: &str) -> Vec<R> {
        let (mut cli, mut backoff) = (self.cli(database).await, Backoff::new());
        loop {
            match cli.query(query).await {
                Ok(rows) => return rows,
                Err(error) if is_unlisted(&error) && backoff.pause().await => {}
                Err(error) => panic!("{query}: {error}"),
            }
        }
    }

    /// Runs one statement without rows.
    pub async fn execute(&self, database: &str, statement: &str) {
        let result = self.cli(database).await.exec_drop(statement, Params::Empty).await;
        result.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }

    /// Lists what lockattr has left in a database, except the fencing counters.
    pub async fn left_in(&self, database: &str) -> Vec<String> {
        let tables = "SELECT table_name FROM information_schema.tables \
                      WHERE table_schema = DATABASE() AND table_name LIKE 'lockattr%' \
                      AND table_name NOT LIKE 'lockattr_v2_%numbers' AND table_name <> 'lockattr_v2_sweep'";
        let mut cli = self.cli(database).await;
        let tables: Vec<String> = cli.query(tables).await.expect("a list of tables");
        let mut left = Vec::new();
        for table in tables {
            let column = match table.as_str() {
                "lockattr_v2_locks" => "CONCAT(name, ' ', mode, ' waiting ', waiting)",
                "lockattr_v2_queue" => {
                    "(SELECT CONCAT(lock_row.name, ' ', lockattr_v2_queue.value) \
                     FROM lockattr_v2_locks AS lock_row \
                     WHERE lock_row.id = lockattr_v2_queue.id AND lock_row.seat = '')"
                }
                _ => "message",
            };
            let rows = format!("SELECT CONCAT('{table}: ', {column}) FROM {table}");
            left.extend(cli.query::<String, _>(rows).await.expect("rows"));
        }
        left
    }

    /// Kills it (SIGKILL). Does nothing if it is down.
    pub fn kill(&self) {
        if let Some(mut process) = self.slot().take() {
            process.kill();
        }
    }

    /// Starts it again on the same port, with its data.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub async fn revive(&self) {
        let (directory, port) = (self.directory.path(), self.port.number());
        let process = launch::revive(self.program, directory, port, &self.extra).await;
        *self.slot() = Some(process);
    }

    fn slot(&self) -> MutexGuard<'_, Option<Process>> {
        // A panic of a test leaves this value intact.
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether MySQL could not list its sessions, because a statement of one of them, perhaps of another test, has a
/// character beyond utf8mb3 at that moment (MySQL 9.7, `information_schema.processlist`).
fn is_unlisted(error: &Error) -> bool {
    const ER_CANNOT_CONVERT_STRING: u16 = 3854;
    matches!(error, Error::Server(error) if error.code == ER_CANNOT_CONVERT_STRING)
}

/// The database of a server that one test has to itself.
const ALONE: &str = "lockattr";

impl Engine for MariaDb {
    async fn start() -> Self {
        let server = Self::start_alone().await;
        server.execute("mysql", &format!("CREATE DATABASE {ALONE}")).await;
        server
    }

    fn addrs(&self) -> Vec<String> {
        vec![self.addr()]
    }

    fn url_at(&self, addrs: &[String]) -> String {
        patient(&format!("mysql://{USER}:{PASSWORD}@{}/{ALONE}", addrs.join(",")))
    }

    async fn restart(&self) {
        self.kill();
        self.revive().await;
    }

    fn freeze(&self) {
        self.slot().as_ref().expect("the server is up").stop();
    }

    fn thaw(&self) {
        self.slot().as_ref().expect("the server is up").resume();
    }

    async fn left(&self) -> Vec<String> {
        self.left_in(ALONE).await
    }
}
