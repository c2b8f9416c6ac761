//! Counts what a server executes: the commands of clients, apart from the calls of scripts.
//!
//! No counter of the server separates the two. `INFO commandstats` and `total_commands_processed`
//! include the calls of scripts, on Redis 7.0 and 8.6 and on Valkey 9.1 alike, and lockattr sends
//! `SET` and also calls it in scripts. `MONITOR` names the client that sent each command, or `lua`.
//! It slows the server down, so no time is measured while it runs.

use std::time::Duration;

use lockattr_tests::{Cli, RedisServer};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// The last command that a [`Monitor`] reads.
const END: &str = "bench:the-count-ends";

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked {
    /// Commands of clients.
    pub(crate) sent: u64,
    /// Calls of scripts.
    pub(crate) called: u64,
}

/// Counts what a server executes, from [`begin`](Self::begin) until [`end`](Self::end).
pub(crate) struct Monitor {
    cli: Cli,
    counting: JoinHandle<Asked>,
}

impl Monitor {
    /// Counts every command that is sent from now on, by any client.
    pub(crate) async fn begin(server: &RedisServer) -> Self {
        let cli = server.cli().await;
        let mut stream = TcpStream::connect(server.addr()).await.expect("the server listens");
        stream.write_all(b"MONITOR\r\n").await.expect("the server reads");
        let mut lines = BufReader::new(stream);
        let mut line = Vec::new();
        lines.read_until(b'\n', &mut line).await.expect("the server answers");
        assert_eq!(line, b"+OK\r\n", "`MONITOR` is refused");
        // In its own task: unread output would accumulate in the server.
        Self { cli, counting: tokio::spawn(count(lines)) }
    }

    pub(crate) async fn end(self) -> Asked {
        self.cli.query::<()>(&["ECHO", END]).await;
        self.counting.await.expect("counting does not panic")
    }
}

/// Parses lines such as `+1795380733.92 [0 127.0.0.1:3507] "get" "a"` or `+1795380733.92 [0 lua]
/// …`.
async fn count(mut lines: BufReader<TcpStream>) -> Asked {
    let (mut asked, mut line) = (Asked::default(), Vec::new());
    let end = format!("\"{END}\"\r\n");
    loop {
        line.clear();
        let read = lines.read_until(b'\n', &mut line).await.expect("the server keeps running");
        assert!(read > 0, "the server ended `MONITOR`");
        if line.ends_with(end.as_bytes()) {
            return asked;
        }
        let source = line.split(|&byte| byte == b']').next().unwrap_or_default();
        match source.ends_with(b" lua") {
            true => asked.called += 1,
            false => asked.sent += 1,
        }
    }
}

/// The CPU time of the server's process so far, user and system.
pub(crate) async fn server_cpu(cli: &Cli) -> Duration {
    let mut total = Duration::ZERO;
    for field in ["used_cpu_user", "used_cpu_sys"] {
        let seconds = cli.info(field).await.trim().parse().expect("seconds with a point");
        total += Duration::from_secs_f64(seconds);
    }
    total
}
