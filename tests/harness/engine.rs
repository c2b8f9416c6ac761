//! The interface to the servers of every engine, for tests and benchmarks that run on each engine.

use std::time::Duration;

/// A server of one engine, or an ensemble of them.
///
/// Tests that do not break it share one in a `static`, from several runtimes in turn. So it keeps
/// no connection open, and any task may call it.
#[allow(async_fn_in_trait, reason = "only tests call it, from one task")]
pub trait Engine: Sized + Send + Sync + 'static {
    /// URL settings under which the lock of a silent holder expires soon: a TTL of two seconds, and
    /// the engine's other timeouts to match.
    const SHORT: &'static str = "ttl=2s";

    /// URL settings under which a request without a response fails soon.
    const QUICK: &'static str = "response_timeout=500ms&connect_timeout=1s&heartbeat=500ms";

    /// The longest time that a lock stays held after its holder's last sign of life, as the docs
    /// promise for the settings [`SHORT`](Self::SHORT).
    const GIVES_UP_WITHIN: Duration = Duration::from_secs(2);

    /// Whether a lock lasts until its lease ends, even if the holder's connections close earlier.
    const OUTLIVES_ITS_CONNECTION: bool = true;

    /// Whether its servers send clients the addresses of the other servers, in plain text. Wires in
    /// front of them then rewrite those addresses.
    const NAMES_SERVERS: bool = false;

    /// Starts it on free ports, with its data in its own directory.
    async fn start() -> Self;

    /// Returns the URL of a store on it.
    fn url(&self) -> String {
        self.url_at(&self.addrs())
    }

    /// Returns the same URL with more settings, `name=value&…`.
    fn url_with(&self, query: &str) -> String {
        with_query(&self.url(), query)
    }

    /// Returns `127.0.0.1:PORT` of each of its servers, for proxies in front of them.
    fn addrs(&self) -> Vec<String>;

    /// Returns the same URL with these addresses instead of its own.
    fn url_at(&self, addrs: &[String]) -> String;

    /// Kills all its servers (SIGKILL) and starts them again with their data, on the same ports.
    /// Returns once they respond.
    async fn restart(&self);

    /// Pauses all its servers (SIGSTOP).
    fn freeze(&self);

    /// Resumes all its servers (SIGCONT).
    fn thaw(&self);

    /// Lists what lockattr has left in the store, except fencing counters: one line for each entry,
    /// with the lock's key if the entry belongs to a lock.
    async fn left(&self) -> Vec<String>;
}

/// Returns the URL with these settings, which replace its own settings of the same names.
pub fn with_query(url: &str, query: &str) -> String {
    let (base, old) = url.split_once('?').unwrap_or((url, ""));
    let name = |setting: &str| setting.split('=').next().unwrap_or_default().to_owned();
    let is_replaced = |setting: &str| query.split('&').any(|new| name(new) == name(setting));
    let kept = old.split('&').filter(|setting| !setting.is_empty() && !is_replaced(setting));
    let all: Vec<&str> = kept.chain(query.split('&')).collect();
    format!("{base}?{}", all.join("&"))
}

/// Calls a macro with all engines: `engines!(each)` is `each! { redis: RedisServer, … }`.
///
/// This is the only list of engines: tests and benchmarks run on exactly these.
#[macro_export]
macro_rules! engines {
    ($each:ident) => {
        $each! {
            redis: $crate::RedisServer,
            postgres: $crate::PostgresServer,
            mysql: $crate::MariaDb,
            zookeeper: $crate::ZooKeeper,
            etcd: $crate::Etcd,
        }
    };
}
