//! One worker process, as the fleet sees it: it writes orders and reads lines.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::timeout;

use super::Size;
use crate::outcome::Outcome;
use crate::peers::Peer;

/// The time after a round for acquisitions that were waiting at its end.
const WAIT_LIMIT: Duration = Duration::from_secs(30);

/// A worker that ends when this value is dropped, and also with its stdin if this program is
/// killed.
pub(super) struct Process {
    _child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts the process, and returns when it is ready; an error if it cannot be measured.
    pub(super) async fn start(
        peer: Peer,
        url: &str,
        key: &str,
        size: Size,
    ) -> Result<Self, String> {
        let mut command = peer.program()?;
        command.args([url, key]).args(size.load.to_words());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| {
            let program = command.as_std().get_program().to_string_lossy().into_owned();
            format!("{program}: {error}")
        })?;
        child.id().into_iter().for_each(|id| size.cores.keep_worker(id));
        let stdin = child.stdin.take().expect("stdin is a pipe");
        let stdout = child.stdout.take().expect("stdout is a pipe");
        let mut process = Self { _child: child, stdin, lines: BufReader::new(stdout).lines() };
        match process.line(Duration::ZERO).await?.split_once(' ') {
            None => Ok(process),
            Some((_, why)) => Err(why.to_owned()),
        }
    }

    pub(super) async fn go(&mut self, window: Duration) -> Result<Outcome, String> {
        let order = format!("go {}\n", window.as_micros());
        self.stdin.write_all(order.as_bytes()).await.map_err(|error| error.to_string())?;
        let mut outcome = Outcome::new(window);
        loop {
            let line = self.line(window).await?;
            if let Some(why) = line.strip_prefix("failed ") {
                return Err(why.to_owned());
            }
            if !outcome.read(&line)? {
                return Ok(outcome);
            }
        }
    }

    async fn line(&mut self, window: Duration) -> Result<String, String> {
        match timeout(window + WAIT_LIMIT, self.lines.next_line()).await {
            Ok(Ok(Some(line))) => Ok(line),
            Ok(Ok(None)) => Err("its process ended".to_owned()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("its process printed nothing for {WAIT_LIMIT:?}")),
        }
    }
}
