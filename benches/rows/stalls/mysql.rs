//! The sessions on MariaDB and MySQL, which are threads of one process.

use std::time::Duration;

use lockattr_tests::MariaDb;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use tokio::sync::Mutex;

use super::{Kind, Sessions};

/// The number of a session's thread is in this table.
pub(super) const OPTIONS: &[&str] = &["--performance-schema=ON"];

/// Sessions of the managers: the thread, and whether it sleeps in a statement.
const ALL: &str = "SELECT thread_os_id, \
    COALESCE(processlist_time >= 1 AND processlist_command <> 'Sleep', 0) \
    FROM performance_schema.threads WHERE processlist_db = 'bench' \
    AND (processlist_time < 1 OR processlist_command <> 'Sleep')";

pub(super) struct MysqlSessions {
    connection: Mutex<Conn>,
}

impl MysqlSessions {
    pub(super) async fn of(server: &MariaDb) -> Self {
        Self { connection: Mutex::new(server.cli("mysql").await) }
    }
}

impl Sessions for MysqlSessions {
    async fn of(&self, kind: Kind) -> Vec<i32> {
        let rows: Vec<(i32, bool)> =
            self.connection.lock().await.query(ALL).await.expect("a list of sessions");
        let wanted = kind == Kind::Listens;
        rows.into_iter().filter(|&(_, sleeps)| sleeps == wanted).map(|(id, _)| id).collect()
    }

    async fn stop(&self, sessions: &[i32], time: Duration) {
        let session = sessions[0];
        let stopped = tokio::task::spawn_blocking(move || stop(Pid::from_raw(session), time));
        stopped.await.expect("no panic");
    }
}

/// A signal would stop all threads, so this one is traced, as by a debugger.
#[expect(clippy::disallowed_methods, reason = "a thread without tasks, which must stay the tracer")]
fn stop(thread: Pid, time: Duration) {
    let none = ptrace::Options::empty();
    let traced = ptrace::seize(thread, none).and_then(|()| ptrace::interrupt(thread));
    if traced.and_then(|()| waitpid(thread, Some(WaitPidFlag::__WALL))).is_ok() {
        std::thread::sleep(time);
        ptrace::detach(thread, None).ok();
    }
}
