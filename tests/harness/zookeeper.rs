//! A ZooKeeper ensemble of three servers, or one server.

mod session;
mod tls;

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::eventually::{Backoff, HUNG};
use crate::port::Port;
use crate::process::{Process, install_hint};
use crate::{Certificates, Engine, patient};

/// The jar's path on Debian. Its manifest lists all its dependencies.
const JAR: &str = "/usr/share/java/zookeeper.jar";

/// A server that does not respond within this time is skipped, and asked again later: it may be paused.
const BRIEF: Duration = Duration::from_secs(2);

/// How many ticks a server may be silent before the others elect a leader without it: a minute, for it may get no
/// core for a while. And a leader that was stopped for longer than this, and goes on, proposes what it was sent
/// before, while its followers join it again. ZooKeeper 3.8 may then wait for their acknowledgements without end, and
/// commit nothing more: <https://issues.apache.org/jira/browse/ZOOKEEPER-4685> is one such fault.
const SYNC_LIMIT: u32 = 120;

/// The same for a test in which a silent leader is replaced.
const HASTY_SYNC_LIMIT: u32 = 6;

/// Servers that elect a leader. They are killed when this value is dropped. They write without
/// `fsync`, and remove empty lock nodes after a fifth of a second.
///
/// Their tick is 500 ms, and they grant sessions of up to an hour. The jar is
/// `/usr/share/java/zookeeper.jar`, or the one that the environment variable
/// `LOCKATTR_ZOOKEEPER_JAR` names; `java` is the one on the `PATH`, or the one that `LOCKATTR_JAVA`
/// names.
#[derive(Debug)]
pub struct ZooKeeper {
    servers: Vec<Member>,
    chroot: String,
}

/// One server of the ensemble.
#[derive(Debug)]
struct Member {
    process: Mutex<Option<Process>>,
    /// The ports for clients, for followers and for elections.
    ports: [Port; 3],
    /// The port for clients with TLS.
    secure_port: Option<Port>,
    directory: TempDir,
}

impl ZooKeeper {
    /// Starts one server for each of these certificates, which also serves clients with TLS.
    ///
    /// # Panics
    ///
    /// As [`Engine::start`] does.
    pub async fn with_tls(certificates: &[&Certificates]) -> Self {
        let certificates: Vec<_> = certificates.iter().copied().map(Some).collect();
        Self::launch(&certificates, SYNC_LIMIT).await
    }

    /// Starts one server, for tests of what the servers agree on anyway: a third of the processes.
    ///
    /// # Panics
    ///
    /// As [`Engine::start`] does.
    pub async fn single() -> Self {
        Self::launch(&[None], SYNC_LIMIT).await
    }

    /// Starts servers that elect another leader when theirs has been silent for three seconds.
    ///
    /// # Panics
    ///
    /// As [`Engine::start`] does.
    pub async fn hasty() -> Self {
        Self::launch(&[None; 3], HASTY_SYNC_LIMIT).await
    }

    /// Returns `localhost:port` of each server that serves clients with TLS.
    pub fn secure_addrs(&self) -> Vec<String> {
        let ports = self.servers.iter().filter_map(|server| server.secure_port.as_ref());
        ports.map(|port| format!("localhost:{port}")).collect()
    }

    /// Returns the ensemble that all tests of a program share, each with its own
    /// [`chroot`](Self::url_below).
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<ZooKeeper> = OnceCell::const_new();
        SHARED.get_or_init(|| Self::launch(&[None; 3], SYNC_LIMIT)).await
    }

    /// Returns `zookeeper://…/chroot` that no other test has.
    pub fn url_apart(&self) -> String {
        self.url_below(&self.addrs(), &self.chroot_apart())
    }

    /// Returns the path of a node that no other test has, nor one above it, which would belong to the
    /// login of the test that was first. No path is the beginning of another.
    pub fn chroot_apart(&self) -> String {
        static TESTS: AtomicUsize = AtomicUsize::new(0);
        format!("{}{:05}", self.chroot, TESTS.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the URL of a store below the node `chroot`, at these addresses.
    pub fn url_below(&self, addrs: &[String], chroot: &str) -> String {
        patient(&format!("zookeeper://{}{chroot}", addrs.join(",")))
    }

    /// Returns the index of the leader.
    ///
    /// # Panics
    ///
    /// If there is none within [`HUNG`](crate::HUNG).
    pub async fn leader(&self) -> usize {
        let mut backoff = Backoff::new();
        loop {
            for (nth, server) in self.servers.iter().enumerate() {
                let reply = server.four_letters("srvr", BRIEF).await.unwrap_or_default();
                if reply.contains("Mode: leader") {
                    return nth;
                }
            }
            assert!(backoff.pause().await, "no leader within {HUNG:?}: {}", self.logs());
        }
    }

    /// Returns the sum of one field of `mntr` over all servers.
    ///
    /// # Panics
    ///
    /// If a server does not respond.
    pub async fn sum(&self, name: &str) -> i64 {
        let mut sum = 0;
        for server in &self.servers {
            let reply = server.four_letters("mntr", HUNG).await.expect("the server responds");
            let value = reply.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('\t'));
            sum += value.and_then(|value| value.trim().parse::<i64>().ok()).unwrap_or_default();
        }
        sum
    }

    /// Returns the number of watches on this node and those below it, over all servers.
    ///
    /// # Panics
    ///
    /// If a server does not respond.
    pub async fn watches(&self, chroot: &str) -> usize {
        let mut watches = 0;
        for server in &self.servers {
            // A line for each node, and then one for each session that watches it.
            let reply = server.four_letters("wchp", HUNG).await.expect("the server responds");
            let mut is_below = false;
            for line in reply.lines() {
                match line.strip_prefix('\t') {
                    Some(_session) => watches += usize::from(is_below),
                    None => is_below = line.starts_with(chroot),
                }
            }
        }
        watches
    }

    /// Pauses a server (SIGSTOP).
    pub fn freeze_one(&self, nth: usize) {
        self.servers[nth].with(Process::stop);
    }

    /// Resumes a server (SIGCONT).
    pub fn thaw_one(&self, nth: usize) {
        self.servers[nth].with(Process::resume);
    }

    /// Kills a server (SIGKILL).
    pub fn kill_one(&self, nth: usize) {
        self.servers[nth].kill();
    }

    /// Starts a killed server again, with its data.
    pub async fn revive_one(&self, nth: usize) {
        self.servers[nth].launch();
        self.wait_until_up().await;
    }

    async fn launch(certificates: &[Option<&Certificates>], sync_limit: u32) -> Self {
        let jar = jar();
        assert!(
            Path::new(&jar).exists(),
            "{jar} is missing. {}, or set LOCKATTR_ZOOKEEPER_JAR to its path.",
            install_hint("zookeeper default-jre-headless")
        );
        let ports: Vec<_> = certificates.iter().map(|_| [(); 3].map(|()| Port::free())).collect();
        let peers: String = ports.iter().enumerate().fold(String::new(), |peers, (nth, ports)| {
            let [_, follow, elect] = ports;
            format!("{peers}server.{nth}=127.0.0.1:{follow}:{elect}\n")
        });
        let servers = ports.into_iter().zip(certificates).enumerate();
        // A server that follows the wrong one gives up after `initLimit`, and elects again.
        let init_limit = sync_limit.max(40);
        let settings = format!("initLimit={init_limit}\nsyncLimit={sync_limit}\n{peers}");
        let servers = servers
            .map(|(nth, (ports, certificates))| Member::new(nth, ports, &settings, *certificates));
        let ensemble = Self { servers: servers.collect(), chroot: "/t".into() };
        ensemble.wait_until_up().await;
        ensemble
    }

    async fn wait_until_up(&self) {
        let mut backoff = Backoff::new();
        for server in &self.servers {
            while !server.serves().await {
                let waited = backoff.pause().await;
                assert!(waited, "a server does not serve within {HUNG:?}: {}", self.logs());
                assert!(!server.has_ended(), "a server ended: {}", self.logs());
            }
        }
    }

    fn logs(&self) -> String {
        let log = |server: &Member| fs::read_to_string(server.directory.path().join("log"));
        let logs = self.servers.iter().map(|server| log(server).unwrap_or_default());
        logs.map(|log| log.chars().rev().take(2000).collect::<String>().chars().rev().collect())
            .collect::<Vec<String>>()
            .join("\n--\n")
    }
}

impl Engine for ZooKeeper {
    const SHORT: &'static str = "ttl=2s&session_timeout=4s";
    const QUICK: &'static str = "response_timeout=500ms&connect_timeout=1s";
    /// The session timeout, a tick to which it is rounded up, half a tick until the leader learns
    /// of the last ping, and the time that three Java processes on two cores take to report it.
    const GIVES_UP_WITHIN: Duration = Duration::from_secs(6);

    async fn start() -> Self {
        Self::launch(&[None; 3], SYNC_LIMIT).await
    }

    fn addrs(&self) -> Vec<String> {
        self.servers.iter().map(Member::addr).collect()
    }

    fn url_at(&self, addrs: &[String]) -> String {
        self.url_below(addrs, &self.chroot)
    }

    async fn restart(&self) {
        self.servers.iter().for_each(Member::kill);
        self.servers.iter().for_each(Member::launch);
        self.wait_until_up().await;
    }

    fn freeze(&self) {
        (0..self.servers.len()).for_each(|nth| self.freeze_one(nth));
    }

    fn thaw(&self) {
        (0..self.servers.len()).for_each(|nth| self.thaw_one(nth));
    }

    /// Returns all nodes at and below the chroot.
    async fn left(&self) -> Vec<String> {
        self.left_below(&self.chroot).await
    }
}

impl ZooKeeper {
    async fn client(&self) -> zookeeper_client::Client {
        let connector = zookeeper_client::Client::connector();
        let connector = connector.with_session_timeout(HUNG).with_connection_timeout(HUNG / 10);
        let client = connector.connect(&self.addrs().join(",")).await;
        client.expect("the harness can connect")
    }

    /// Returns all nodes at and below this one.
    ///
    /// # Panics
    ///
    /// If the harness cannot connect.
    pub async fn left_below(&self, chroot: &str) -> Vec<String> {
        let client = self.client().await;
        let (mut left, mut pending) = (Vec::new(), vec![chroot.to_owned()]);
        client.sync("/").await.expect("the server can catch up with the leader");
        while let Some(path) = pending.pop() {
            let Ok(children) = client.list_children(&path).await else { continue };
            pending.extend(children.iter().map(|child| format!("{path}/{child}")));
            left.push(path);
        }
        left
    }
}

impl ZooKeeper {
    /// Closes a session, as if its client had been silent for too long.
    ///
    /// # Panics
    ///
    /// If no server does so within [`HUNG`](crate::HUNG).
    pub async fn end_session(&self, session: u64) {
        let (addrs, mut backoff) = (self.addrs(), Backoff::new());
        // A server that has just lost its leader accepts no client.
        for addr in addrs.iter().cycle() {
            match session::end(addr, session).await {
                Ok(()) => return,
                Err(error) => assert!(backoff.pause().await, "{error}"),
            }
        }
    }

    /// Creates an empty node that stays until it is deleted.
    ///
    /// # Panics
    ///
    /// If it exists, or its parent does not.
    pub async fn create(&self, path: &str) {
        use zookeeper_client::{Acls, CreateMode};
        let client = self.client().await;
        let stays = CreateMode::Persistent.with_acls(Acls::anyone_all());
        client.create(path, b"", &stays).await.expect("there is room for the node");
    }

    /// Deletes a node.
    ///
    /// # Panics
    ///
    /// If it does not exist.
    pub async fn delete(&self, path: &str) {
        let client = self.client().await;
        client.delete(path, None).await.expect("the node exists");
    }

    /// Grants everyone all permissions on a node except READ.
    ///
    /// # Panics
    ///
    /// If it does not exist.
    pub async fn hide(&self, path: &str) {
        use zookeeper_client::{Acl, AuthId, Permission};
        let client = self.client().await;
        let but_read =
            [Permission::CREATE, Permission::WRITE, Permission::DELETE, Permission::ADMIN];
        let acl = but_read.map(|right| Acl::new(right, AuthId::anyone()));
        client.set_acl(path, &acl, None).await.expect("the node exists");
    }
}

impl Member {
    /// Starts the server with this number.
    fn new(
        nth: usize,
        ports: [Port; 3],
        settings: &str,
        certificates: Option<&Certificates>,
    ) -> Self {
        let directory = tempfile::Builder::new().prefix("lockattr-zookeeper-").tempdir();
        let directory = directory.expect("a temporary directory");
        let (path, port) = (directory.path(), &ports[0]);
        let secure_port = certificates.map(|_| Port::free());
        let tls = secure_port.as_ref().zip(certificates);
        let tls = tls.map(|(port, certificates)| tls::settings(port, certificates));
        let config = format!(
            "tickTime=500\ndataDir={}\nclientPort={port}\n\
             clientPortAddress=127.0.0.1\nmaxSessionTimeout=3600000\nminSessionTimeout=1000\n\
             maxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=*\n{settings}{}",
            path.display(),
            tls.unwrap_or_default(),
        );
        fs::write(path.join("zoo.cfg"), config).expect("the file can be written");
        fs::write(path.join("myid"), nth.to_string()).expect("the file can be written");
        let member = Self { process: Mutex::default(), ports, secure_port, directory };
        member.launch();
        member
    }

    fn addr(&self) -> String {
        format!("127.0.0.1:{}", self.ports[0])
    }

    fn launch(&self) {
        let path = self.directory.path();
        let log = File::create(path.join("log")).expect("the file can be written");
        let java = std::env::var("LOCKATTR_JAVA").unwrap_or_else(|_| "java".into());
        let mut command = Command::new(java);
        command
            .args([
                "-Xmx64m",
                "-Xms16m",
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "-Xshare:auto",
            ])
            .args(["-Dzookeeper.forceSync=no", "-Dznode.container.checkIntervalMs=200"])
            .args(["-Dzookeeper.extendedTypesEnabled=true", "-Dzookeeper.jmx.log4j.disable=true"])
            // A server that finds no leader asks the others again at growing intervals, by default
            // of up to a minute.
            .arg("-Dzookeeper.fastleader.maxNotificationInterval=1000")
            .args(["-cp", &tls::class_path(), "org.apache.zookeeper.server.quorum.QuorumPeerMain"])
            .arg(path.join("zoo.cfg"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a handle"))
            .stderr(log);
        let process = Process::start(&mut command, Some(path));
        let process = process.unwrap_or_else(|error| {
            panic!("`java` could not be started: {error}; {}", install_hint("zookeeper"))
        });
        *self.slot() = Some(process);
    }

    fn kill(&self) {
        if let Some(mut process) = self.slot().take() {
            process.kill();
        }
    }

    fn has_ended(&self) -> bool {
        self.slot().as_mut().is_none_or(|process| process.exit_status().is_some())
    }

    fn with<T>(&self, act: impl FnOnce(&Process) -> T) -> T {
        act(self.slot().as_ref().expect("the server is down"))
    }

    fn slot(&self) -> MutexGuard<'_, Option<Process>> {
        // A panic of a test leaves this value intact.
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether it is a follower or the leader.
    async fn serves(&self) -> bool {
        self.four_letters("srvr", BRIEF).await.is_some_and(|reply| reply.contains("Mode: "))
    }

    async fn four_letters(&self, word: &str, limit: Duration) -> Option<String> {
        let request = async {
            let mut stream = TcpStream::connect(self.addr()).await.ok()?;
            stream.write_all(word.as_bytes()).await.ok()?;
            let mut reply = String::new();
            stream.read_to_string(&mut reply).await.ok()?;
            Some(reply)
        };
        timeout(limit, request).await.ok()?
    }
}

fn jar() -> String {
    std::env::var("LOCKATTR_ZOOKEEPER_JAR").unwrap_or_else(|_| JAR.into())
}
