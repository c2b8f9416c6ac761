//! A child process that runs `node/main.rs` and takes commands line by line.

use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::timeout;

use crate::connections::OtherEnds;
use crate::eventually::{Backoff, HUNG, eventually};
use crate::process::Process;

/// Starts a [`Node`]: `node!("hold", url = server.url(), key = "product:42")`.
///
/// A macro, because `CARGO_BIN_EXE_node` is only set where the test program is compiled.
#[macro_export]
macro_rules! node {
    ($verb:expr $(, $name:ident = $value:expr)* $(,)?) => {
        $crate::Node::start(
            env!("CARGO_BIN_EXE_node"),
            $verb,
            &[$((stringify!($name), ::std::string::ToString::to_string(&$value))),*],
        )
    };
}

/// A child process that takes commands on its stdin and replies on its stdout. It is killed when
/// this value is dropped.
///
/// Its stderr appears in the test's own output.
#[derive(Debug)]
pub struct Node {
    process: Process,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Node {
    /// Starts `program VERB name=value …`; tests use [`node!`](crate::node).
    ///
    /// # Panics
    ///
    /// If the program cannot be started, or outside a runtime.
    pub fn start(program: &str, verb: &str, arguments: &[(&str, String)]) -> Self {
        let mut command = Command::new(program);
        command.arg(verb).args(arguments.iter().map(|(name, value)| format!("{name}={value}")));
        Self::run(command)
    }

    /// Starts any other program with a line protocol.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start) does.
    pub fn run(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let started = Process::start(&mut command, None);
        let mut process = started.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let (stdin, stdout) = process.take_pipes();
        let stdin = ChildStdin::from_std(stdin).expect("a runtime for the node's stdin");
        let stdout = ChildStdout::from_std(stdout).expect("a runtime for the node's stdout");
        Self { process, stdin: Some(stdin), lines: BufReader::new(stdout).lines() }
    }

    /// Sends one line.
    ///
    /// # Panics
    ///
    /// If the node has ended.
    pub async fn say(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open until finish()");
        let sent = stdin.write_all(format!("{line}\n").as_bytes()).await;
        sent.unwrap_or_else(|error| panic!("{line:?} cannot be sent to the node: {error}"));
    }

    /// Returns the next line that it writes.
    ///
    /// # Panics
    ///
    /// If the node ends, or writes nothing within the limit.
    pub async fn line(&mut self) -> String {
        match timeout(HUNG, self.lines.next_line()).await {
            Ok(Ok(Some(line))) => line,
            Ok(Ok(None)) => panic!("the node ended without a reply"),
            Ok(Err(error)) => panic!("the node's stdout: {error}"),
            Err(_) => panic!("the node wrote nothing for {HUNG:?}"),
        }
    }

    /// Returns the next line, or `None` if the node ended or wrote nothing within `limit`.
    pub async fn line_within(&mut self, limit: Duration) -> Option<String> {
        timeout(limit, self.lines.next_line()).await.ok()?.ok()?
    }

    /// Returns its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Kills it (SIGKILL). It releases nothing.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Kills it, and waits until its servers have noticed that its connections are closed. Until then, it may be
    /// granted a lock. A [`Wire`](crate::Wire) counts as a server.
    pub async fn dies(&mut self) {
        let other_ends = OtherEnds::of(self.id());
        self.kill();
        eventually("the servers notice its end", async || !other_ends.are_open()).await;
    }

    /// Interrupts it (SIGINT), like Ctrl-C.
    pub fn interrupt_signal(&self) {
        self.process.interrupt();
    }

    /// Pauses it (SIGSTOP), like a long pause of its machine.
    pub fn stop_signal(&self) {
        self.process.stop();
    }

    /// Resumes it (SIGCONT).
    pub fn continue_signal(&self) {
        self.process.resume();
    }

    /// Waits until it has stopped itself (SIGSTOP).
    ///
    /// # Panics
    ///
    /// If it does not, or ends instead.
    pub async fn stands_still(&mut self) {
        let mut backoff = Backoff::new();
        while !self.process.has_stopped() {
            assert!(backoff.pause().await, "the node did not stop itself within {HUNG:?}");
        }
    }

    /// Closes its stdin, which makes it exit, and waits until it has exited.
    ///
    /// # Panics
    ///
    /// If it does not exit.
    pub async fn finish(&mut self) -> ExitStatus {
        self.stdin = None;
        let mut backoff = Backoff::new();
        loop {
            if let Some(status) = self.process.exit_status() {
                return status;
            }
            assert!(backoff.pause().await, "the node did not exit after its stdin was closed");
        }
    }
}
