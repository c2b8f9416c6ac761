//! Starts the server's process on a copy of empty data, and waits until it responds.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder};

use super::program::{Program, data_in};
use crate::eventually::Backoff;
use crate::log::last_lines;
use crate::process::Process;

pub(super) const USER: &str = "locker";
pub(super) const PASSWORD: &str = "s3cret";

/// Starts a new server with these options.
pub(super) async fn launch(
    program: &'static Program,
    directory: &Path,
    port: u16,
    extra: &[String],
) -> Process {
    create_data(program, directory).await;
    let Ok(process) = boot(program, directory, port, extra).await else {
        panic!("the server did not start:\n{}", log_tail(directory));
    };
    process
}

/// Starts the same server again, with retries: the system may still be cleaning up after the old
/// process.
pub(super) async fn revive(
    program: &Program,
    directory: &Path,
    port: u16,
    extra: &[String],
) -> Process {
    let mut backoff = Backoff::new();
    loop {
        match boot(program, directory, port, extra).await {
            Ok(process) => return process,
            Err(()) if backoff.pause().await => {}
            Err(()) => panic!("the server did not restart:\n{}", log_tail(directory)),
        }
    }
}

pub(super) async fn connect(port: u16, database: &str) -> Result<Conn, mysql_async::Error> {
    let login = OptsBuilder::default()
        .ip_or_hostname("127.0.0.1")
        .tcp_port(port)
        .user(Some(USER))
        .pass(Some(PASSWORD))
        .db_name(Some(database))
        // Whatever limits a test sets for statements.
        .init(vec!["SET autocommit = 1 /*M!, max_statement_time = 0 */"])
        .prefer_socket(false);
    Conn::new(login).await
}

async fn boot(
    program: &Program,
    directory: &Path,
    port: u16,
    extra: &[String],
) -> Result<Process, ()> {
    let mut command = program.command();
    command.args([
        format!("--datadir={}", data_in(directory).display()),
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
        "--max-connections=2000",
    ]);
    command.args(extra);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = Process::start(&mut command, Some(directory));
    let mut process = started.unwrap_or_else(|error| program.missing(&error));
    let mut backoff = Backoff::new();
    loop {
        // Checked first: if this server could not bind, another one may respond on its port.
        if process.exit_status().is_some() {
            return Err(());
        }
        if is_this_process(port, process.id(), directory).await {
            return Ok(process);
        }
        if !backoff.pause().await {
            return Err(());
        }
    }
}

/// Returns whether this process responds on the port, and not another that bound it first.
async fn is_this_process(port: u16, pid: u32, directory: &Path) -> bool {
    let Ok(mut cli) = connect(port, "mysql").await else { return false };
    let reported: Result<Option<String>, _> = cli.query_first("SELECT @@pid_file").await;
    let pid_file = directory.join("pid");
    let written = fs::read_to_string(&pid_file).is_ok_and(|text| text.trim() == pid.to_string());
    written && reported.is_ok_and(|file| file.is_some_and(|file| Path::new(&file) == pid_file))
}

/// Copies an empty server's data, and writes the statements that it runs at each start.
async fn create_data(program: &'static Program, directory: &Path) {
    program.copy_template(directory).await;
    let init = format!(
        "CREATE USER IF NOT EXISTS {USER}@'%' IDENTIFIED BY '{PASSWORD}';\n\
         GRANT ALL ON *.* TO {USER}@'%' WITH GRANT OPTION;\n"
    );
    fs::write(directory.join("init.sql"), init).expect("a file in our own directory");
}

fn log_tail(directory: &Path) -> String {
    let log = fs::read_to_string(directory.join("log")).unwrap_or_default();
    last_lines(&log)
}
