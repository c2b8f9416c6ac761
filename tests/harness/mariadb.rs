//! One MariaDB of the test's own: its data copied from a template, a database for each test.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mysql_async::prelude::{FromRow, Queryable};
use mysql_async::{Conn, OptsBuilder, Params};
use nix::unistd::Uid;
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::Engine;
use crate::eventually::Patience;
use crate::port::Port;
use crate::process::Process;

/// Name other programs than those on the `PATH` or in `/usr/sbin`.
const PROGRAM: &str = "LOCKATTR_MARIADB_SERVER";
const INSTALL: &str = "LOCKATTR_MARIADB_INSTALL_DB";

const USER: &str = "locker";
const PASSWORD: &str = "s3cret";

/// Small files, because each server gets a copy of its own.
const FILES: [&str; 2] =
    ["--innodb-log-file-size=8M", "--innodb-data-file-path=ibdata1:4M:autoextend"];

/// How long a server may take to answer for the first time; a loaded machine starts many at once.
const STARTS_WITHIN: Duration = Duration::from_secs(30);

/// A `mariadbd` on a free loopback port, in a directory of its own, that ends with this value.
///
/// What was committed survives a kill of the process, and is not forced to the disk. The program is
/// `mariadbd` on the `PATH` or in `/usr/sbin`, or what the environment variable
/// `LOCKATTR_MARIADB_SERVER` names.
#[derive(Debug)]
pub struct MariaDb {
    process: Mutex<Option<Process>>,
    port: Port,
    directory: TempDir,
    extra: Vec<String>,
}

impl MariaDb {
    /// The server that all tests of a program share, each with a database of its own.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<MariaDb> = OnceCell::const_new();
        SHARED.get_or_init(Self::start_alone).await
    }

    /// A server with these options besides the usual ones.
    ///
    /// # Panics
    ///
    /// When the program is missing, saying how to install it, or when it does not start.
    pub async fn with(options: &[&str]) -> Self {
        let directory = TempDir::with_prefix("lockattr-").expect("a temporary directory");
        copy_template(directory.path()).await;
        let extra: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let port = Port::free();
        let Ok(process) = boot(directory.path(), port.number(), &extra).await else {
            panic!("mariadbd did not start:\n{}", log(directory.path()));
        };
        Self { process: Mutex::new(Some(process)), port, directory, extra }
    }

    async fn start_alone() -> Self {
        Self::with(&[]).await
    }

    /// A new, empty database on this server: its name.
    pub async fn database(&self) -> String {
        static DATABASES: AtomicUsize = AtomicUsize::new(0);
        let name = format!("test_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        self.execute("mysql", &format!("CREATE DATABASE {name}")).await;
        name
    }

    /// `127.0.0.1:PORT`.
    pub fn addr(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The URL of a store in this database.
    pub fn url_of(&self, database: &str) -> String {
        format!("mysql://{USER}:{PASSWORD}@{}/{database}", self.addr())
    }

    /// A connection of the harness' own, for looking and for meddling.
    ///
    /// # Panics
    ///
    /// When it cannot be made. So do all that ask over one.
    pub async fn cli(&self, database: &str) -> Conn {
        let connected = connect(self.port.number(), database).await;
        connected.unwrap_or_else(|error| panic!("the harness cannot look into MariaDB: {error}"))
    }

    /// The rows of one query.
    pub async fn query<R: FromRow + Send + 'static>(&self, database: &str, query: &str) -> Vec<R> {
        let rows = self.cli(database).await.query(query).await;
        rows.unwrap_or_else(|error| panic!("{query}: {error}"))
    }

    /// One statement without rows.
    pub async fn execute(&self, database: &str, statement: &str) {
        let done = self.cli(database).await.exec_drop(statement, Params::Empty).await;
        done.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }

    /// What lockattr has left in a database, but for what counts fencing tokens.
    pub async fn left_in(&self, database: &str) -> Vec<String> {
        let tables = "SELECT table_name FROM information_schema.tables \
                      WHERE table_schema = DATABASE() AND table_name LIKE 'lockattr%' \
                      AND table_name <> 'lockattr_fence'";
        let mut cli = self.cli(database).await;
        let tables: Vec<String> = cli.query(tables).await.expect("a list of tables");
        let mut left = Vec::new();
        for table in tables {
            let what = match table.as_str() {
                "lockattr_locks" => "CONCAT(name, ' ', mode, ' waiting ', waiting)",
                "lockattr_line" => "value",
                _ => "message",
            };
            let rows = format!("SELECT CONCAT('{table}: ', {what}) FROM {table}");
            left.extend(cli.query::<String, _>(rows).await.expect("rows"));
        }
        left
    }

    /// Dies at once (SIGKILL). Does nothing to a server that is down.
    pub fn kill(&self) {
        if let Some(mut process) = self.slot().take() {
            process.kill();
        }
    }

    /// Comes back on the same port with its data.
    ///
    /// # Panics
    ///
    /// When it does not.
    pub async fn revive(&self) {
        let mut patience = Patience::new(STARTS_WITHIN);
        loop {
            match boot(self.directory.path(), self.port.number(), &self.extra).await {
                Ok(process) => {
                    *self.slot() = Some(process);
                    return;
                }
                // The system may still be clearing up after the last life.
                Err(()) if patience.pause().await => {}
                Err(()) => panic!("mariadbd does not come back:\n{}", log(self.directory.path())),
            }
        }
    }

    fn slot(&self) -> MutexGuard<'_, Option<Process>> {
        // A test that panicked inside leaves nothing half done that matters here.
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The database that a server has for a test that has it alone.
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
        format!("mysql://{USER}:{PASSWORD}@{}/{ALONE}", addrs.join(","))
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

async fn connect(port: u16, database: &str) -> Result<Conn, mysql_async::Error> {
    let login = OptsBuilder::default()
        .ip_or_hostname("127.0.0.1")
        .tcp_port(port)
        .user(Some(USER))
        .pass(Some(PASSWORD))
        .db_name(Some(database))
        .prefer_socket(false);
    Conn::new(login).await
}

async fn boot(directory: &Path, port: u16, extra: &[String]) -> Result<Process, ()> {
    let mut command = program(PROGRAM, "mariadbd");
    command.arg("--no-defaults").args(FILES).args([
        format!("--datadir={}", directory.join("data").display()),
        format!("--socket={}", directory.join("socket").display()),
        format!("--pid-file={}", directory.join("pid").display()),
        format!("--log-error={}", directory.join("log").display()),
        format!("--init-file={}", directory.join("init.sql").display()),
        format!("--port={port}"),
        format!("--tmpdir={}", directory.display()),
    ]);
    command.args([
        "--bind-address=127.0.0.1",
        "--skip-name-resolve",
        "--performance-schema=OFF",
        "--innodb-buffer-pool-size=24M",
        "--innodb-flush-log-at-trx-commit=2",
        "--innodb-flush-method=nosync",
        "--max-connections=2000",
    ]);
    if Uid::current().is_root() {
        command.arg("--user=root");
    }
    command.args(extra);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = Process::start(&mut command, Some(directory));
    let mut process = started.unwrap_or_else(|error| missing("mariadbd", &error));
    let mut patience = Patience::new(STARTS_WITHIN);
    loop {
        // Asked first: a server that could not bind may find another answering on its port.
        if process.ended().is_some() {
            return Err(());
        }
        if is_itself(port, process.id(), directory).await {
            return Ok(process);
        }
        if !patience.pause().await {
            return Err(());
        }
    }
}

/// Whether it is this process that answers on the port, and not one that was quicker to bind.
async fn is_itself(port: u16, pid: u32, directory: &Path) -> bool {
    let Ok(mut cli) = connect(port, "mysql").await else { return false };
    let file: Result<Option<String>, _> = cli.query_first("SELECT @@pid_file").await;
    let ours = directory.join("pid");
    let written = fs::read_to_string(&ours).is_ok_and(|text| text.trim() == pid.to_string());
    written && file.is_ok_and(|file| file.is_some_and(|file| Path::new(&file) == ours))
}

/// An empty server's data, made once per program, because that takes it half a second.
async fn copy_template(to: &Path) {
    static TEMPLATE: OnceCell<(TempDir, Process)> = OnceCell::const_new();
    let make = async || {
        let directory = TempDir::with_prefix("lockattr-").expect("a temporary directory");
        install(directory.path());
        // A `static` is never dropped: the directory goes with a process that ends with ours.
        let mut sleeper = Command::new("sleep");
        sleeper.arg("infinity").stdin(Stdio::null());
        let tied = Process::start(&mut sleeper, Some(directory.path())).expect("`sleep`");
        (directory, tied)
    };
    let (template, _tied) = TEMPLATE.get_or_init(make).await;
    let copied = Command::new("cp").arg("-r").arg(template.path().join("data")).arg(to).status();
    assert!(copied.is_ok_and(|status| status.success()), "the template was not copied");
    let init = format!(
        "CREATE USER IF NOT EXISTS {USER}@'%' IDENTIFIED BY '{PASSWORD}';\n\
         GRANT ALL ON *.* TO {USER}@'%' WITH GRANT OPTION;\n"
    );
    fs::write(to.join("init.sql"), init).expect("a file in our own directory");
}

fn install(directory: &Path) {
    let mut command = program(INSTALL, "mariadb-install-db");
    command.arg("--no-defaults").args(FILES).args([
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
        "--skip-name-resolve",
    ]);
    command.arg(format!("--datadir={}", directory.join("data").display()));
    if Uid::current().is_root() {
        command.arg("--user=root");
    }
    // Each server, when it starts, clears away what another is making in the directory that both use.
    command.arg(format!("--tmpdir={}", directory.display()));
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| missing("mariadb-install-db", &error));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "mariadb-install-db failed:\n{said}");
}

fn program(variable: &str, usual: &str) -> Command {
    match std::env::var(variable) {
        Ok(chosen) => Command::new(chosen),
        // Where Debian puts servers, which is on root's `PATH` only.
        Err(_) if Path::new("/usr/sbin").join(usual).exists() => {
            Command::new(Path::new("/usr/sbin").join(usual))
        }
        Err(_) => Command::new(usual),
    }
}

fn missing(program: &str, error: &std::io::Error) -> ! {
    match error.kind() {
        ErrorKind::NotFound => panic!(
            "`{program}` is not installed. `cargo xtask test` installs what the tests need where it \
             may; by hand: `apt-get install mariadb-server`, or set {PROGRAM} and {INSTALL} to the \
             programs' paths."
        ),
        _ => panic!("`{program}` could not be started: {error}"),
    }
}

fn log(directory: &Path) -> String {
    let log = fs::read_to_string(directory.join("log")).unwrap_or_default();
    let lines: Vec<&str> = log.lines().rev().take(15).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}
