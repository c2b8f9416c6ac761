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

    /// URL settings under which a request without a response fails soon, for tests whose subject is silence.
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

    /// Returns the [patient](crate::patient) URL of a store on it.
    fn url(&self) -> String {
        self.url_at(&self.addrs())
    }

    /// Returns the same URL with more settings, `name=value&…`.
    fn url_with(&self, query: &str) -> String {
        with_query(&self.url(), query)
    }

    /// Returns `127.0.0.1:PORT` of each of its servers, for proxies in front of them.
    fn addrs(&self) -> Vec<String>;

    /// Returns [`url`](Self::url) with these addresses instead of its own.
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

/// What [`patient`] adds to a URL: no request, no wait and no lease ends before a test does.
const PATIENT: [&str; 5] =
    ["connect_timeout=60s", "response_timeout=60s", "wait=10m", "ttl=10m", "session_timeout=20m"];

/// Returns the URL with times that a test does not reach, however busy the machine is.
///
/// The library's defaults suit a server that serves a program. Among tests that compete for two cores, a
/// server may not get a core for seconds, and its silence would fail a test of something else. A test whose
/// subject is a silent server, a wait or a lease that ends says its own short time with [`with_query`].
///
/// A lease of ten minutes also means that a lock which is free within [`HUNG`](crate::HUNG) was released: it did
/// not expire. So do sessions of twenty minutes, to which ZooKeeper and etcd tie their locks. Redlock keeps a lock
/// no longer than `max_ttl`.
pub fn patient(url: &str) -> String {
    let (scheme, _) = url.split_once("://").unwrap_or_default();
    let settings = match scheme {
        "redlock" => &PATIENT[..3],
        "zookeeper" | "etcd" => &PATIENT[..],
        _ => &PATIENT[..4],
    };
    with_query(url, &settings.join("&"))
}

/// Returns a [`patient`] URL for a store without a manager, which knows the times of requests only.
pub fn for_store(url: &str) -> String {
    without(&PATIENT[2..4], url)
}

/// Returns a [`patient`] URL as a program writes it: with the library's own times, and for clients that know
/// no such settings.
pub fn bare(url: &str) -> String {
    without(&PATIENT, url)
}

fn without(settings: &[&str], url: &str) -> String {
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let kept: Vec<&str> = query.split('&').filter(|setting| !settings.contains(setting)).collect();
    if kept.is_empty() { base.to_owned() } else { format!("{base}?{}", kept.join("&")) }
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
