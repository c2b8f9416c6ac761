//! A PostgreSQL server of one test, or of all tests of a program: its address, its URLs, and how it
//! is killed and restarted.

mod launch;
mod processes;
mod tls;

use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) use launch::{as_other_user, other_user};
use tempfile::TempDir;
pub use tls::ServerCertificate;
use tokio::sync::OnceCell;
use tokio_postgres::{Client, NoTls};

use crate::port::Port;
use crate::process::Process;
use crate::{Engine, patient, with_query};

/// A PostgreSQL on a free loopback port, in its own directory. It is killed when this value is
/// dropped. It does not sync writes to disk: they survive the server but not the machine.
///
/// The programs are those of the newest version under `/usr/lib/postgresql`, or those in the
/// directory of the `postgres` that the environment variable `LOCKATTR_POSTGRES` names. If the
/// tests run as root, it runs as `postgres` or `nobody`, because it refuses root.
///
/// A server in a `static` is never dropped; it is killed when the test program ends, however that
/// ends.
#[derive(Debug)]
pub struct PostgresServer {
    process: Mutex<Option<Process>>,
    directory: TempDir,
    port: Port,
}

impl PostgresServer {
    /// Returns the server that all tests share that do not break it, each with its own schema or
    /// database.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<PostgresServer> = OnceCell::const_new();
        SHARED.get_or_init(Self::start).await
    }

    /// Returns `127.0.0.1:PORT`.
    pub fn addr(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Creates a schema and returns the URL of a store in it, and its name.
    pub async fn new_schema(&self) -> (String, String) {
        let name = new_name();
        self.run(&format!("create schema {name}")).await;
        (with_query(&self.url(), &format!("schema={name}")), name)
    }

    /// Creates a database and returns the URL of a store in it, and its name.
    pub async fn new_database(&self) -> (String, String) {
        let name = new_name();
        self.run(&format!("create database {name}")).await;
        (patient(&format!("postgres://lockattr@{}/{name}", self.addr())), name)
    }

    /// Opens a connection of the harness' own, to inspect and to change the server.
    ///
    /// # Panics
    ///
    /// If it cannot connect.
    pub async fn client(&self) -> Client {
        self.client_of("postgres").await
    }

    /// Opens a connection to another database.
    ///
    /// # Panics
    ///
    /// If it cannot connect.
    pub async fn client_of(&self, database: &str) -> Client {
        // Whatever limits a test sets for the database.
        let options = "options='-c statement_timeout=0 -c lock_timeout=0'";
        let words =
            format!("host=127.0.0.1 port={} user=lockattr dbname={database} {options}", self.port);
        let (client, connection) =
            tokio_postgres::connect(&words, NoTls).await.unwrap_or_else(|error| {
                panic!("the harness cannot connect to {}: {error:?}", self.addr())
            });
        tokio::spawn(connection);
        client
    }

    /// Runs statements.
    ///
    /// # Panics
    ///
    /// If one fails.
    pub async fn run(&self, statements: &str) {
        let result = self.client().await.batch_execute(statements).await;
        result.unwrap_or_else(|error| panic!("{statements}: {error:?}"));
    }

    /// Starts a server with these settings (`name = value`) in addition to the usual ones.
    pub async fn with(settings: &[&str]) -> Self {
        let server = launch::create().await;
        server.set(settings);
        server.revive().await;
        server
    }

    /// Starts a server whose commits take this many microseconds at least, as on a slow disk.
    pub async fn with_slow_commits(delay: u32) -> Self {
        let delay = format!("commit_delay = {delay}");
        Self::with(&["fsync = on", "commit_siblings = 0", &delay]).await
    }

    /// Adds settings, for its next start.
    fn set(&self, settings: &[&str]) {
        let file = self.directory.path().join("data/postgresql.auto.conf");
        let before = std::fs::read_to_string(&file).expect("its configuration can be read");
        let lines = format!("{before}{}\n", settings.join("\n"));
        std::fs::write(file, lines).expect("its configuration can be written");
    }

    /// Returns the process id that it has now. A restart changes it.
    ///
    /// # Panics
    ///
    /// If it is down.
    pub fn pid(&self) -> u32 {
        self.slot().as_ref().expect("the server is down").id()
    }

    /// Kills it with all of its processes (SIGKILL). Does nothing if it is down.
    pub fn kill(&self) {
        if let Some(mut process) = self.slot().take() {
            processes::kill_all(&mut process);
        }
    }

    /// Returns the id of the segment of shared memory (System V) that it has, or had before it was killed.
    pub fn shared_memory(&self) -> Option<u32> {
        let file = self.directory.path().join("data/postmaster.pid");
        let lines = std::fs::read_to_string(file).ok()?;
        lines.lines().nth(6)?.split_whitespace().nth(1)?.parse().ok()
    }

    /// Starts it again on the same port, with its data.
    ///
    /// # Panics
    ///
    /// If it is not down.
    pub async fn revive(&self) {
        assert!(self.slot().is_none(), "revive() is for a server that was killed");
        let process = launch::start(self.directory.path(), self.port.number()).await;
        *self.slot() = Some(process);
    }

    /// Pauses the process of one session (SIGSTOP). All others continue.
    pub fn stop_session(&self, pid: i32) {
        processes::stop_one(pid);
    }

    /// Resumes the process of one session (SIGCONT). It handles what arrived meanwhile.
    pub fn continue_session(&self, pid: i32) {
        processes::resume_one(pid);
    }

    /// Lists what lockattr has left in the tables of a schema, except the fencing counter.
    pub async fn left_in(&self, database: &str, schema: &str) -> Vec<String> {
        let client = self.client_of(database).await;
        let mut left = Vec::new();
        for table in ["locks", "holders", "queue"] {
            let exists = format!("select to_regclass('{schema}.lockattr_{table}') is not null");
            let exists =
                client.query_one(&exists, &[]).await.expect("the harness can read the tables");
            // A table that does not exist has no rows.
            if !exists.get::<_, bool>(0) {
                continue;
            }
            let rows = format!(
                "select encode(name, 'escape') || ' ' || rows::text
                 from {schema}.lockattr_{table} as rows"
            );
            let rows = client.query(&rows, &[]).await.expect("the harness can read the tables");
            left.extend(rows.iter().map(|row| format!("{table}: {}", row.get::<_, &str>(0))));
        }
        left
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<Process>> {
        // A panic of a test leaves this value intact.
        self.process.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn with_process(&self, act: impl FnOnce(&Process)) {
        act(self.slot().as_ref().expect("the server is down"));
    }
}

impl Engine for PostgresServer {
    async fn start() -> Self {
        Self::with(&[]).await
    }

    fn addrs(&self) -> Vec<String> {
        vec![self.addr()]
    }

    fn url_at(&self, addrs: &[String]) -> String {
        patient(&format!("postgres://lockattr@{}/postgres", addrs.join(",")))
    }

    async fn restart(&self) {
        self.kill();
        self.revive().await;
    }

    fn freeze(&self) {
        self.with_process(processes::stop_all);
    }

    fn thaw(&self) {
        self.with_process(processes::resume_all);
    }

    async fn left(&self) -> Vec<String> {
        self.left_in("postgres", "public").await
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.kill();
        // It cannot do this itself any more, and the system has only some thousand of them.
        if let Some(id) = self.shared_memory() {
            Command::new("ipcrm").args(["-m", &id.to_string()]).output().ok();
        }
    }
}

fn new_name() -> String {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    format!("test_{}", LAST.fetch_add(1, Ordering::Relaxed))
}
