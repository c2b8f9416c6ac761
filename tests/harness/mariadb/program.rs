//! Finds the server program that the tests run, MariaDB or MySQL, and the options it needs.

use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use nix::unistd::Uid;

use crate::process::install_hint;
use crate::template::Template;

/// The environment variables that name programs other than those on the `PATH` or in `/usr/sbin`.
const SERVER: &str = "LOCKATTR_MARIADB_SERVER";
const INSTALL: &str = "LOCKATTR_MARIADB_INSTALL_DB";

/// The environment variable that names the newest MySQL, in addition to the usual program.
const NEWEST_MYSQL: &str = "LOCKATTR_NEWEST_MYSQL";

/// Options for small files, because each server gets its own copy.
const MARIADB_FILES: [&str; 2] =
    ["--innodb-log-file-size=8M", "--innodb-data-file-path=ibdata1:4M:autoextend"];

/// The same for MySQL, without a binary log, which MariaDB does not write by default.
const MYSQL_FILES: [&str; 6] = [
    "--innodb-redo-log-capacity=16M",
    "--innodb-data-file-path=ibdata1:5M:autoextend",
    "--innodb-autoextend-increment=1",
    "--innodb-doublewrite=OFF",
    "--innodb-flush-method=nosync",
    "--skip-log-bin",
];

/// A server program that speaks MySQL's protocol.
#[derive(Debug)]
pub(super) struct Program {
    server: PathBuf,
    is_mysql: bool,
    template: Template,
}

impl Program {
    /// Returns the program that the tests run on.
    pub(super) fn chosen() -> &'static Self {
        static CHOSEN: OnceLock<Program> = OnceLock::new();
        CHOSEN.get_or_init(|| Self::at(program_path(SERVER, "mariadbd")))
    }

    /// Returns the MySQL for tests that need exactly that.
    pub(super) fn newest_mysql() -> Option<&'static Self> {
        static NEWEST: OnceLock<Option<Program>> = OnceLock::new();
        let found = NEWEST.get_or_init(|| std::env::var_os(NEWEST_MYSQL).map(Self::at));
        let found = found.as_ref()?;
        assert!(found.is_mysql, "{NEWEST_MYSQL} names a MariaDB");
        Some(found)
    }

    fn at(server: impl Into<PathBuf>) -> Self {
        let server = server.into();
        let output = Command::new(&server).arg("--version").stdin(Stdio::null()).output();
        let output = output.unwrap_or_else(|error| missing(&server, &error));
        let printed = String::from_utf8_lossy(&output.stdout);
        // `…/mysqld  Ver 9.7.4 for Linux …`, `…/mariadbd  Ver 10.11.14-MariaDB-…`
        let version = printed.rsplit(" Ver ").next().unwrap_or_default();
        Self { server, is_mysql: !version.contains("MariaDB"), template: Template::new() }
    }

    pub(super) fn is_mysql(&self) -> bool {
        self.is_mysql
    }

    /// Copies an empty server's data into a server's own directory. To create it takes MariaDB half a
    /// second, and MySQL several seconds.
    pub(super) async fn copy_template(&'static self, directory: &Path) {
        let create = move |directory: &Path| self.initialize_data(&data_in(directory), directory);
        self.template.copy_to(directory, create).await;
    }

    /// Creates an empty server's data, with temporary files in `directory`.
    fn initialize_data(&self, data: &Path, directory: &Path) {
        let mut command = if self.is_mysql {
            let mut command = Command::new(&self.server);
            command.args(["--no-defaults", "--initialize-insecure"]).args(MYSQL_FILES);
            command
        } else {
            let mut command = Command::new(program_path(INSTALL, "mariadb-install-db"));
            command.arg("--no-defaults").args(MARIADB_FILES).args([
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                "--skip-name-resolve",
            ]);
            command
        };
        command.arg(format!("--datadir={}", data.display()));
        // A server that starts removes other servers' temporary files from a shared directory.
        command.arg(format!("--tmpdir={}", directory.display()));
        as_root(&mut command);
        let output = command.stdin(Stdio::null()).output();
        let output = output.unwrap_or_else(|error| missing(Path::new("the installer"), &error));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{} cannot create its data:\n{errors}",
            self.server.display()
        );
    }

    /// Returns the command of the server, with the options it needs.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.server);
        command.arg("--no-defaults");
        if self.is_mysql {
            // The X protocol has a fixed port, which only one server could use.
            command.args(MYSQL_FILES).arg("--mysqlx=OFF");
        } else {
            command.args(MARIADB_FILES).arg("--innodb-flush-method=nosync");
        }
        as_root(&mut command);
        command
    }

    pub(super) fn missing(&self, error: &Error) -> ! {
        missing(&self.server, error)
    }
}

/// Returns the data directory inside a server's own directory.
pub(super) fn data_in(directory: &Path) -> PathBuf {
    directory.join("data")
}

fn as_root(command: &mut Command) {
    // Both servers refuse to run as root without this option.
    if Uid::current().is_root() {
        command.arg("--user=root");
    }
}

fn program_path(variable: &str, usual: &str) -> PathBuf {
    let chosen = std::env::var_os(variable).map(PathBuf::from);
    // Debian installs servers here, and only root's `PATH` has it.
    let debian = Some(Path::new("/usr/sbin").join(usual)).filter(|path| path.exists());
    chosen.or(debian).unwrap_or_else(|| usual.into())
}

fn missing(program: &Path, error: &Error) -> ! {
    let program = program.display();
    match error.kind() {
        ErrorKind::NotFound => panic!(
            "`{program}` is not installed. {}, or set {SERVER} and {INSTALL} to the programs' paths.",
            install_hint("mariadb-server")
        ),
        _ => panic!("`{program}` could not be started: {error}"),
    }
}
