//! The setup of a counterexample: servers, processes that take commands, and the history they
//! write.

use std::time::Duration;

use lockattr_history::{Damage, check, read};
use lockattr_tests::{Node, RedisServer, ResourceFile, Servers, eventually, node};
use tempfile::TempDir;

/// The key of the lock on the server, for all algorithms.
pub(super) const KEY: &str = "lock:counterexamples";

/// The name of our algorithm.
pub(super) const OURS: &str = "lockattr";

/// Long enough for all steps while another holder's lease lasts, also if no process runs for some seconds.
pub(super) const TTL: Duration = Duration::from_secs(15);

/// Reported for a key that exists when all processes are dead, and never ends.
const LEAKED: &str = "leaked key";

/// Processes that use one algorithm over these servers.
pub(super) struct Stage<'a> {
    algorithm: &'a str,
    addrs: Vec<String>,
    directory: TempDir,
    nodes: Vec<Node>,
    compares_tokens: bool,
}

/// One of the processes.
#[derive(Clone, Copy)]
pub(super) struct Client(usize);

impl<'a> Stage<'a> {
    pub(super) fn new(algorithm: &'a str, addrs: Vec<String>) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        Self { algorithm, addrs, directory, nodes: Vec::new(), compares_tokens: false }
    }

    /// Creates a stage whose resource may compare fencing tokens.
    pub(super) fn with_resource(
        algorithm: &'a str,
        addrs: Vec<String>,
        compares_tokens: bool,
    ) -> Self {
        Self { compares_tokens, ..Self::new(algorithm, addrs) }
    }

    /// Starts one more process.
    pub(super) fn start_process(&mut self) -> Client {
        self.start_process_with_clock(0, 0)
    }

    /// Starts a process whose clock is `ahead` by milliseconds, or fixed at `now`. Our algorithm
    /// reads no clock of a client.
    pub(super) fn start_process_with_clock(&mut self, ahead: i64, now: i64) -> Client {
        let node = node!(
            "counterexample",
            algorithm = self.algorithm,
            addrs = self.addrs.join(","),
            key = "counterexamples",
            ttl = TTL.as_millis(),
            history = self.history().display(),
            process = self.nodes.len(),
            clock = ahead,
            now = now,
            resource = self.resource().path(),
            compares_tokens = self.compares_tokens,
        );
        self.nodes.push(node);
        Client(self.nodes.len() - 1)
    }

    /// Sends a command without waiting for the result.
    pub(super) async fn send(&mut self, Client(client): Client, order: &str) {
        self.nodes[client].say(order).await;
    }

    /// Sends a command and returns the process's result.
    pub(super) async fn order(&mut self, client: Client, order: &str) -> String {
        self.order_chain(client, order, 0).await
    }

    /// Like `order`, for one thread of the process.
    pub(super) async fn order_chain(
        &mut self,
        Client(client): Client,
        order: &str,
        chain: u32,
    ) -> String {
        self.nodes[client].say(&format!("{order} {chain}")).await;
        self.nodes[client].line().await
    }

    /// Sends a command, as [`order`](Self::order) does, and fails unless it succeeds.
    pub(super) async fn expect_success(&mut self, client: Client, order: &str) {
        let reply = self.order(client, order).await;
        assert!(reply.starts_with("yes"), "{}: {order}: {reply}", self.algorithm);
    }

    /// Acquires the lock, and returns its fencing token.
    pub(super) async fn acquire(&mut self, client: Client) -> u64 {
        let reply = self.order(client, "acquire").await;
        let token = reply.strip_prefix("yes ").and_then(|token| token.parse().ok());
        token.unwrap_or_else(|| panic!("{}: acquire: {reply}", self.algorithm))
    }

    pub(super) fn kill(&mut self, Client(client): Client) {
        self.nodes[client].kill();
    }

    /// Stops the process until the lock has expired.
    pub(super) async fn pause_past_its_lease(
        &mut self,
        Client(client): Client,
        server: &RedisServer,
    ) {
        self.nodes[client].stop_signal();
        let cli = server.cli().await;
        eventually("the lease ends", async || cli.value(KEY).await.is_none()).await;
    }

    pub(super) fn resume(&mut self, Client(client): Client) {
        self.nodes[client].continue_signal();
    }

    /// The stopped process continues and releases what the second holds by now, and a third process
    /// tries to acquire.
    pub(super) async fn release_late(&mut self, first: Client, second: Client, third: Client) {
        self.resume(first);
        self.order(first, "release").await;
        self.expect_success(second, "check").await;
        self.order(third, "acquire").await;
        self.order(third, "check").await;
        self.expect_success(second, "check").await;
    }

    /// Kills all processes and returns what the checker reports.
    pub(super) async fn report(mut self, servers: &impl Servers) -> Vec<String> {
        for node in &mut self.nodes {
            node.kill();
        }
        let events = read(self.history()).expect("the history of all processes");
        assert!(!events.is_empty(), "no history was written");
        let mut reported: Vec<String> = match check(&events) {
            Ok(_) => Vec::new(),
            Err(found) => found.iter().map(|violation| violation.kind.to_string()).collect(),
        };
        reported.dedup();
        for server in servers.servers() {
            if is_leaked(server).await {
                reported.push(LEAKED.to_owned());
            }
        }
        reported
    }

    /// Returns the damage to the resource, and asserts how often it was written.
    pub(super) fn damage(&self, writes: u64) -> Vec<Damage> {
        let (written, damage) = self.resource().judged();
        assert_eq!(written, writes, "writes to the resource");
        damage
    }

    /// Returns the result of a command sent by [`tell`](Self::tell).
    pub(super) async fn receive(&mut self, Client(client): Client) -> String {
        self.nodes[client].line().await
    }

    fn resource(&self) -> ResourceFile {
        ResourceFile::at(self.directory.path().join("resource"))
    }

    fn history(&self) -> std::path::PathBuf {
        self.directory.path().join("history")
    }
}

/// Two processes hold the lock in turn, and nothing fails. The first carries out the orders `during`
/// while it holds, and the second is refused after each of them. Then the second acquires the lock,
/// and carries out `afterwards`.
pub(super) async fn nothing_fails(
    algorithm: &str,
    during: &[&str],
    afterwards: &[&str],
) -> Vec<String> {
    let server = RedisServer::start().await;
    let mut stage = Stage::new(algorithm, vec![server.addr()]);
    let (first, second) = (stage.start_process(), stage.start_process());
    stage.expect_success(first, "acquire").await;
    for order in during {
        stage.expect_success(first, order).await;
        assert_eq!(stage.order(second, "acquire").await, "no");
    }
    stage.expect_success(first, "release").await;
    stage.expect_success(second, "acquire").await;
    for order in afterwards {
        stage.expect_success(second, order).await;
    }
    stage.report(&server).await
}

/// Returns whether the lock exists without an end.
async fn is_leaked(server: &RedisServer) -> bool {
    server.cli().await.pttl(KEY).await == -1
}
