//! What a server is asked: the commands that clients send, apart from the calls that scripts make.
//!
//! No count that a server keeps tells the two apart. `INFO commandstats` and
//! `total_commands_processed` have the calls of scripts in them, on Redis 7.0 and 8.6 and on Valkey
//! 9.1 alike, and our library sends `SET` and also calls it. `MONITOR` names the client that sent
//! each command, or `lua`. It slows the server down, so no process takes a time while it runs.

use std::time::Duration;

use lockattr_tests::{Cli, RedisServer};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// The last thing that a [`Monitor`] hears.
const END: &str = "bench:the-count-ends";

/// What a server was asked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked {
    /// Commands that clients sent.
    pub(crate) sent: u64,
    /// Calls that scripts made.
    pub(crate) called: u64,
}

/// Counts what a server is asked, from [`begin`](Self::begin) until [`end`](Self::end).
pub(crate) struct Monitor {
    cli: Cli,
    counting: JoinHandle<Asked>,
}

impl Monitor {
    /// Every command that is sent after this is counted, whichever process sends it.
    pub(crate) async fn begin(server: &RedisServer) -> Self {
        let cli = server.cli().await;
        let mut stream = TcpStream::connect(server.addr()).await.expect("the server listens");
        stream.write_all(b"MONITOR\r\n").await.expect("the server reads");
        let mut lines = BufReader::new(stream);
        let mut line = Vec::new();
        lines.read_until(b'\n', &mut line).await.expect("the server answers");
        assert_eq!(line, b"+OK\r\n", "`MONITOR` is refused");
        // In a task of its own: what no process reads would pile up in the server.
        Self { cli, counting: tokio::spawn(count(lines)) }
    }

    /// What was asked until now.
    pub(crate) async fn end(self) -> Asked {
        self.cli.query::<()>(&["ECHO", END]).await;
        self.counting.await.expect("counting does not panic")
    }
}

/// Reads lines such as `+1795380733.92 [0 127.0.0.1:3507] "get" "a"` or `+1795380733.92 [0 lua] …`.
async fn count(mut lines: BufReader<TcpStream>) -> Asked {
    let (mut asked, mut line) = (Asked::default(), Vec::new());
    let end = format!("\"{END}\"\r\n");
    loop {
        line.clear();
        let read = lines.read_until(b'\n', &mut line).await.expect("the server goes on");
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

/// How long the server's process has computed so far, in and out of the kernel.
pub(crate) async fn server_cpu(cli: &Cli) -> Duration {
    let mut total = Duration::ZERO;
    for field in ["used_cpu_user", "used_cpu_sys"] {
        let seconds = cli.info(field).await.trim().parse().expect("seconds with a point");
        total += Duration::from_secs_f64(seconds);
    }
    total
}
