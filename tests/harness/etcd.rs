//! A real etcd cluster: three members that elect a leader within a second, or one.

mod ctl;
mod grpc_proxy;
mod member;
mod secure;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::OnceCell;

pub use self::grpc_proxy::GrpcProxy;
use self::member::Member;
pub use self::secure::SecureEtcd;
use crate::eventually::{Backoff, HUNG};
use crate::{Engine, patient};

const MEMBERS: usize = 3;

/// Three members or one, which are killed when this value is dropped.
///
/// They write without `fsync`: written data survives their processes, and tests kill only those.
#[derive(Debug)]
pub struct Etcd {
    // Declared first, so that they are dropped before their directory.
    members: Vec<Mutex<Member>>,
    directory: TempDir,
    protected: AtomicBool,
}

impl Etcd {
    /// Returns the cluster that all tests of a program share. A test that kills or pauses members
    /// starts its own.
    ///
    /// # Panics
    ///
    /// As [`Engine::start`] does.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<Etcd> = OnceCell::const_new();
        let members = || Member::all(MEMBERS).into_iter().map(Member::patient).collect();
        SHARED.get_or_init(|| Self::launch(members())).await
    }

    /// Starts a cluster of one member, for tests of what the members agree on anyway: a third of the processes.
    ///
    /// # Panics
    ///
    /// As [`Engine::start`] does.
    pub async fn single() -> Self {
        Self::launch(Member::all(1)).await
    }

    /// Returns the index of the leader. Waits for an election that is under way.
    ///
    /// # Panics
    ///
    /// If no member that is up leads within [`HUNG`](crate::HUNG).
    pub async fn leader(&self) -> usize {
        let mut backoff = Backoff::new();
        loop {
            for (nth, addr) in self.addrs().iter().enumerate() {
                let up = self.member(nth).is_up();
                if up && ctl::leads(addr).await {
                    return nth;
                }
            }
            assert!(backoff.pause().await, "no etcd member that is up leads within {HUNG:?}");
        }
    }

    /// Kills a member (SIGKILL).
    pub fn kill(&self, nth: usize) {
        self.member(nth).kill();
    }

    /// Starts a killed member again, with its data. Returns once it serves.
    ///
    /// # Panics
    ///
    /// If it does not serve within [`HUNG`](crate::HUNG).
    pub async fn revive(&self, nth: usize) {
        self.member(nth).start(self.directory.path());
        self.ready(&[nth]).await.unwrap_or_else(|error| panic!("etcd did not restart: {error}"));
    }

    /// Pauses a member (SIGSTOP).
    pub fn stop_signal(&self, nth: usize) {
        self.member(nth).stop();
    }

    /// Resumes a member (SIGCONT).
    pub fn continue_signal(&self, nth: usize) {
        self.member(nth).resume();
    }

    /// Returns all keys with this prefix.
    pub async fn keys(&self, prefix: &str) -> Vec<String> {
        let found = self.ctl(&["get", prefix, "--prefix", "--keys-only"]).await;
        found.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    /// Returns the id of the lease that all keys with this prefix belong to, in hexadecimal.
    ///
    /// # Panics
    ///
    /// If there is no such key, or they belong to several leases.
    pub async fn lease_of(&self, prefix: &str) -> String {
        let found = self.ctl(&["get", prefix, "--prefix", "-w", "fields"]).await;
        let mut leases: Vec<_> =
            found.lines().filter_map(|line| line.strip_prefix("\"Lease\" : ")).collect();
        leases.dedup();
        let [lease] = leases[..] else { panic!("{prefix}: {leases:?}") };
        format!("{:x}", lease.parse::<i64>().expect("a number"))
    }

    /// Returns the ids of all live leases, in hexadecimal.
    pub async fn leases(&self) -> Vec<String> {
        let found = self.ctl(&["lease", "list"]).await;
        found.lines().skip(1).map(str::to_owned).collect()
    }

    /// Returns the number of events sent to all watches so far.
    ///
    /// # Panics
    ///
    /// If a member does not report it.
    pub async fn events(&self) -> u64 {
        self.sum("etcd_debugging_mvcc_events_total").await
    }

    /// Returns the number of watches at all members that are up.
    ///
    /// # Panics
    ///
    /// If a member does not report it.
    pub async fn watches(&self) -> u64 {
        self.sum("etcd_debugging_mvcc_watcher_total").await
    }

    /// Creates the user `root`, as whom [`ctl`](Self::ctl) runs from now on, and demands that clients log in.
    ///
    /// # Panics
    ///
    /// If it fails.
    pub async fn protect(&self) {
        self.ctl(&["user", "add", "root:root"]).await;
        self.ctl(&["user", "grant-role", "root", "root"]).await;
        self.ctl(&["auth", "enable"]).await;
        self.protected.store(true, Ordering::Relaxed);
    }

    /// Runs `etcdctl` with these arguments and returns its output.
    ///
    /// # Panics
    ///
    /// If it fails.
    pub async fn ctl(&self, words: &[&str]) -> String {
        self.ctl_with_input(words, "").await
    }

    /// The same, for a command that reads its input, such as a password.
    ///
    /// # Panics
    ///
    /// If it fails.
    pub async fn ctl_with_input(&self, words: &[&str], input: &str) -> String {
        let up = self.all().filter(|&nth| self.member(nth).is_up());
        let up: Vec<_> = up.map(|nth| self.member(nth).addr()).collect();
        // To hash a password takes long on a loaded machine.
        let user = self.protected.load(Ordering::Relaxed).then_some("--user=root:root");
        let limits = ["--command-timeout=60s", "--dial-timeout=60s"];
        let words = [words, user.as_slice(), &limits].concat();
        ctl::run(&up.join(","), &words, input)
            .await
            .unwrap_or_else(|error| panic!("etcdctl {words:?}: {error}"))
    }

    async fn launch(members: Vec<Member>) -> Self {
        let directory = TempDir::with_prefix("lockattr-").expect("a temporary directory");
        let members = members.into_iter().map(Mutex::new).collect();
        let etcd = Self { members, directory, protected: AtomicBool::new(false) };
        etcd.start_all().await;
        etcd
    }

    async fn sum(&self, metric: &str) -> u64 {
        let mut sum = 0;
        for nth in self.all().filter(|&nth| self.member(nth).is_up()) {
            let addr = self.member(nth).addr();
            sum += ctl::metric(&addr, metric).await.expect("the member reports its metrics");
        }
        sum
    }

    async fn start_all(&self) {
        self.all().for_each(|nth| self.member(nth).start(self.directory.path()));
        let result = self.ready(&self.all().collect::<Vec<_>>()).await;
        result.unwrap_or_else(|error| panic!("etcd did not start: {error}"));
    }

    fn all(&self) -> std::ops::Range<usize> {
        0..self.members.len()
    }

    /// Waits until these members serve.
    async fn ready(&self, members: &[usize]) -> Result<(), String> {
        let mut backoff = Backoff::new();
        for &nth in members {
            loop {
                self.member(nth).check_running(self.directory.path())?;
                let addr = self.member(nth).addr();
                if ctl::is_healthy(&addr).await {
                    break;
                }
                if !backoff.pause().await {
                    return Err(self.member(nth).log_tail(self.directory.path()));
                }
            }
        }
        Ok(())
    }

    fn member(&self, nth: usize) -> std::sync::MutexGuard<'_, Member> {
        self.members[nth].lock().expect("no test panics while it holds this mutex")
    }
}

impl Engine for Etcd {
    const SHORT: &'static str = "ttl=2s&session_timeout=4s";

    /// The session timeout and a second: the servers check for expired leases every half second.
    const GIVES_UP_WITHIN: Duration = Duration::from_secs(5);

    async fn start() -> Self {
        Self::launch(Member::all(MEMBERS)).await
    }

    fn addrs(&self) -> Vec<String> {
        self.all().map(|nth| self.member(nth).addr()).collect()
    }

    fn url_at(&self, addrs: &[String]) -> String {
        patient(&format!("etcd://{}/", addrs.join(",")))
    }

    async fn restart(&self) {
        self.all().for_each(|nth| self.kill(nth));
        self.start_all().await;
    }

    fn freeze(&self) {
        self.all().for_each(|nth| self.stop_signal(nth));
    }

    fn thaw(&self) {
        self.all().for_each(|nth| self.continue_signal(nth));
    }

    /// Ignores session keys: a session lives as long as its store.
    async fn left(&self) -> Vec<String> {
        let mut left = self.keys("").await;
        left.retain(|key| !key.starts_with("lockattr/session/"));
        left
    }
}

/// Returns the path of a member's log.
fn log_of(directory: &Path, name: &str) -> std::path::PathBuf {
    directory.join(format!("{name}.log"))
}
