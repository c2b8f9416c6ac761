//! A real etcd: three members that elect a leader within a second.

mod ctl;
mod member;

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::OnceCell;

use self::member::Member;
use crate::Engine;
use crate::eventually::Patience;

const MEMBERS: usize = 3;

/// It takes half a second where nothing else is going on.
const LIMIT: Duration = Duration::from_secs(30);

/// Three members that end with this value.
///
/// They write without `fsync`: what they have written outlives their processes, which is all that
/// dies here.
#[derive(Debug)]
pub struct Etcd {
    // Declared, and so dropped, before their directory.
    members: Vec<Mutex<Member>>,
    directory: TempDir,
}

impl Etcd {
    /// One for all tests of a program that only use it: a test that harms members starts its own.
    ///
    /// # Panics
    ///
    /// As [`Engine::start`] does.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<Etcd> = OnceCell::const_new();
        SHARED.get_or_init(Self::start).await
    }

    /// Which member leads; waits for an election that is under way.
    ///
    /// # Panics
    ///
    /// When none that is up does within thirty seconds.
    pub async fn leader(&self) -> usize {
        let mut patience = Patience::new(LIMIT);
        loop {
            for (nth, addr) in self.addrs().iter().enumerate() {
                let up = self.member(nth).is_up();
                if up && ctl::leads(addr).await {
                    return nth;
                }
            }
            assert!(patience.pause().await, "no member of etcd that is up leads");
        }
    }

    /// Kills one (SIGKILL).
    pub fn kill(&self, nth: usize) {
        self.member(nth).kill();
    }

    /// Starts one again that was killed, with its data; returns once it serves.
    ///
    /// # Panics
    ///
    /// When it does not within thirty seconds.
    pub async fn revive(&self, nth: usize) {
        self.member(nth).start(self.directory.path());
        self.ready(&[nth]).await.unwrap_or_else(|why| panic!("etcd does not come back: {why}"));
    }

    /// Stops one where it stands (SIGSTOP).
    pub fn stop_signal(&self, nth: usize) {
        self.member(nth).stop();
    }

    /// It goes on (SIGCONT).
    pub fn continue_signal(&self, nth: usize) {
        self.member(nth).resume();
    }

    /// All keys that begin with this.
    pub async fn keys(&self, prefix: &str) -> Vec<String> {
        let found = self.ctl(&["get", prefix, "--prefix", "--keys-only"]).await;
        found.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    /// All leases that are not over, in hexadecimal digits.
    pub async fn leases(&self) -> Vec<String> {
        let found = self.ctl(&["lease", "list"]).await;
        found.lines().skip(1).map(str::to_owned).collect()
    }

    /// How many events all watches were sent so far.
    ///
    /// # Panics
    ///
    /// When a member does not say.
    pub async fn events(&self) -> u64 {
        let mut events = 0;
        for addr in self.addrs() {
            events += ctl::events(&addr).await.expect("a member that says how it is");
        }
        events
    }

    /// What `etcdctl` prints for these words.
    ///
    /// # Panics
    ///
    /// When it fails.
    pub async fn ctl(&self, words: &[&str]) -> String {
        let up = (0..MEMBERS).filter(|&nth| self.member(nth).is_up());
        let up: Vec<_> = up.map(|nth| self.member(nth).addr()).collect();
        ctl::run(&up.join(","), words)
            .await
            .unwrap_or_else(|why| panic!("etcdctl {words:?}: {why}"))
    }

    async fn launch() -> Result<Self, String> {
        let directory = TempDir::with_prefix("lockattr-").expect("a temporary directory");
        let members = Member::all(MEMBERS).into_iter().map(Mutex::new).collect();
        let etcd = Self { members, directory };
        for nth in 0..MEMBERS {
            etcd.member(nth).start(etcd.directory.path());
        }
        etcd.ready(&[0, 1, 2]).await.map(|()| etcd)
    }

    /// Waits for these to serve.
    async fn ready(&self, which: &[usize]) -> Result<(), String> {
        let mut patience = Patience::new(LIMIT);
        for &nth in which {
            loop {
                self.member(nth).ended(self.directory.path())?;
                let addr = self.member(nth).addr();
                if ctl::is_healthy(&addr).await {
                    break;
                }
                if !patience.pause().await {
                    return Err(self.member(nth).late(self.directory.path()));
                }
            }
        }
        Ok(())
    }

    fn member(&self, nth: usize) -> std::sync::MutexGuard<'_, Member> {
        self.members[nth].lock().expect("no test panics in here")
    }
}

impl Engine for Etcd {
    const SHORT: &'static str = "ttl=2s&session_timeout=4s";

    /// The session's time, and a second: the servers look every half of one which are over.
    const GIVES_UP_WITHIN: Duration = Duration::from_secs(5);

    async fn start() -> Self {
        Self::launch().await.unwrap_or_else(|why| panic!("etcd did not start: {why}"))
    }

    fn addrs(&self) -> Vec<String> {
        (0..MEMBERS).map(|nth| self.member(nth).addr()).collect()
    }

    fn url_at(&self, addrs: &[String]) -> String {
        format!("etcd://{}/", addrs.join(","))
    }

    async fn restart(&self) {
        (0..MEMBERS).for_each(|nth| self.kill(nth));
        (0..MEMBERS).for_each(|nth| self.member(nth).start(self.directory.path()));
        let back = self.ready(&[0, 1, 2]).await;
        back.unwrap_or_else(|why| panic!("etcd does not come back: {why}"));
    }

    fn freeze(&self) {
        (0..MEMBERS).for_each(|nth| self.stop_signal(nth));
    }

    fn thaw(&self) {
        (0..MEMBERS).for_each(|nth| self.continue_signal(nth));
    }

    /// Sessions live as long as their stores.
    async fn left(&self) -> Vec<String> {
        let mut left = self.keys("").await;
        left.retain(|key| !key.starts_with("lockattr/session/"));
        left
    }
}

/// Where a member's log is.
fn log_of(directory: &Path, name: &str) -> std::path::PathBuf {
    directory.join(format!("{name}.log"))
}
