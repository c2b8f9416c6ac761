//! What the servers of all engines have in common, for the tests and the measures that run on each
//! of them.

use std::time::Duration;

/// A server of one engine, or an ensemble of them.
///
/// Tests that do it no harm share one, in a `static` and from one runtime after another: so it
/// keeps no connection open, and is asked from any task.
#[allow(async_fn_in_trait, reason = "only tests call it, from one task")]
pub trait Engine: Sized + Send + Sync + 'static {
    /// Settings of its URL under which a silent holder's lock ends soon: a lease of two seconds, and
    /// whatever else allows for that.
    const SHORT: &'static str = "ttl=2s";

    /// Settings under which an error comes soon where there is no answer.
    const QUICK: &'static str = "response_timeout=500ms&connect_timeout=1s&heartbeat=500ms";

    /// How long, at the most, a lock stays taken whose holder was last heard of now: what the docs
    /// promise under [`SHORT`](Self::SHORT).
    const GIVES_UP_WITHIN: Duration = Duration::from_secs(2);

    /// Whether a lock lasts until its lease ends, even if its holder's connections do earlier.
    const OUTLIVES_ITS_CONNECTION: bool = true;

    /// Whether clients hear from its servers, in plain text, where the others are: then wires in front of
    /// it change that in what they say.
    const NAMES_SERVERS: bool = false;

    /// Starts it on free ports, with its data in a directory of its own.
    async fn start() -> Self;

    /// The URL of a store there.
    fn url(&self) -> String {
        self.url_at(&self.addrs())
    }

    /// The same with more settings, `name=value&…`.
    fn url_with(&self, query: &str) -> String {
        with_query(&self.url(), query)
    }

    /// `127.0.0.1:PORT` of each of its servers, for proxies in front of them.
    fn addrs(&self) -> Vec<String>;

    /// The same URL, with these addresses in place of its own.
    fn url_at(&self, addrs: &[String]) -> String;

    /// Kills all its servers (SIGKILL) and starts them again with their data, on the same ports.
    /// Returns once they answer.
    async fn restart(&self);

    /// Stops them all where they stand (SIGSTOP).
    fn freeze(&self);

    /// They go on (SIGCONT).
    fn thaw(&self);

    /// What lockattr has left in the store, but for what counts fencing tokens: a line for each
    /// thing, with the lock's key in it where it belongs to one.
    async fn left(&self) -> Vec<String>;
}

/// A URL with more settings, in place of those that it has under the same names.
pub fn with_query(url: &str, query: &str) -> String {
    let (base, old) = url.split_once('?').unwrap_or((url, ""));
    let name = |setting: &str| setting.split('=').next().unwrap_or_default().to_owned();
    let said_anew = |setting: &str| query.split('&').any(|new| name(new) == name(setting));
    let kept = old.split('&').filter(|setting| !setting.is_empty() && !said_anew(setting));
    let all: Vec<&str> = kept.chain(query.split('&')).collect();
    format!("{base}?{}", all.join("&"))
}

/// Calls a macro with all engines: `engines!(each)` is `each! { redis: RedisServer, … }`.
///
/// The one list of them: what stands here is tested and measured.
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
