//! The sentinels, which report which server is the master.
//!
//! Queried with a few commands of our own, not with the client's `sentinel` module. That believes
//! the first sentinel that replies, and a sentinel that was cut off from the others reports the old
//! master.

mod follow;
mod master_report;
mod url;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ProtocolVersion, RedisError, RedisResult, Value};
use tokio::runtime;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use self::master_report::MasterReport;
use super::endpoint::Endpoint;
use crate::engines::dial::{LONGEST, handshake_limit};
use crate::lock::server_options::ServerOptions;
use crate::platform::sync::Mutex;
use crate::store::StoreError;

/// How long to wait for the last sentinels once most have replied. One that hangs must not delay a
/// failover, and one that is only slow may know more.
const GRACE: Duration = Duration::from_millis(50);

/// The sentinels of one master.
pub(super) struct Sentinels {
    endpoints: Vec<Endpoint>,
    /// The sentinels' name for the master.
    name: String,
    /// How to reach the master, wherever it is: login, database, TLS or not. Its host is not used.
    template: Endpoint,
    /// The URL without its password, for errors.
    address: String,
    /// How long an attempt to connect to an address of a sentinel may take.
    limit: Duration,
    heartbeat: Duration,
    queries: AtomicU64,
    master_report: watch::Sender<Option<MasterReport>>,
    /// The tasks that are subscribed to them, by runtime.
    followers: Mutex<HashMap<runtime::Id, AbortHandle>>,
}

impl Sentinels {
    pub(super) fn new(
        endpoints: Vec<Endpoint>,
        name: String,
        template: Endpoint,
        address: &str,
        timing: &ServerOptions,
    ) -> Arc<Self> {
        Arc::new(Self {
            endpoints,
            name,
            template,
            address: address.into(),
            limit: timing.connect_timeout,
            heartbeat: timing.heartbeat,
            queries: AtomicU64::new(0),
            master_report: watch::Sender::new(None),
            followers: HashMap::new().into(),
        })
    }

    /// Returns how to reach the current master. Subscribes this runtime to the sentinels.
    pub(super) async fn master(self: &Arc<Self>) -> Result<Endpoint, StoreError> {
        self.follow();
        let report = self.query().await?;
        Ok(self.template.at(&report.host, report.port, &report.address()))
    }

    /// Returns when the server at `address` is known not to be the master any more.
    pub(super) fn left(&self, address: Arc<str>) -> impl Future<Output = ()> + use<> {
        let mut master_report = self.master_report.subscribe();
        async move {
            let another = |master_report: &Option<MasterReport>| {
                master_report
                    .as_ref()
                    .is_some_and(|master_report| *master_report.address() != *address)
            };
            // An error means that the store is gone, and its connections with it.
            master_report.wait_for(another).await.map(drop).unwrap_or_default();
        }
    }

    /// Queries all sentinels at once.
    async fn query(&self) -> Result<MasterReport, StoreError> {
        let query = self.queries.fetch_add(1, Ordering::Relaxed) + 1;
        let majority = self.endpoints.len() / 2 + 1;
        let mut queries: FuturesUnordered<_> =
            self.endpoints.iter().map(|endpoint| self.query_one(endpoint, query)).collect();
        let (mut reports, mut failures) = (Vec::new(), Vec::new());
        // Each query ends in its own time. Without a majority, a report waits for the others of as long as a
        // server in reach may take.
        let mut ends = Instant::now() + LONGEST;
        while let Ok(Some(reply)) = timeout_at(ends, queries.next()).await {
            match reply {
                Ok(master_report) => reports.push(master_report),
                Err(error) => failures.push(error),
            }
            if reports.len() == 1 {
                ends = ends.min(Instant::now() + handshake_limit(self.limit));
            }
            if reports.len() == majority {
                ends = ends.min(Instant::now() + GRACE);
            }
        }
        let is_majority = reports.len() >= majority;
        if reports.is_empty() {
            let said: Vec<_> = failures.iter().map(ToString::to_string).collect();
            let sentence =
                format!("none of the sentinels replied: {} ({})", self.address, said.join("; "));
            let error = StoreError::new(sentence);
            return Err(match failures.pop() {
                Some(source) => error.with_source(source).not_sent(),
                None => error.not_sent(),
            });
        }
        let Some(master_report) = MasterReport::newest(reports.into_iter().flatten()) else {
            let name = &self.name;
            return Err(StoreError::new(format!(
                "the sentinels know no master called `{name}`: {}",
                self.address
            ))
            .not_sent());
        };
        self.accept(master_report, is_majority).ok_or_else(|| {
            StoreError::new(format!(
                "most sentinels do not reply, and the others do not know of the last failover: {}",
                self.address
            ))
            .not_sent()
        })
    }

    /// Records a report. Returns what is known now, or `None` if the report is out of date.
    fn accept(&self, report: MasterReport, is_majority: bool) -> Option<MasterReport> {
        let mut accepted = None;
        self.master_report.send_if_modified(|master_report| {
            accepted = MasterReport::after(master_report.as_ref(), report, is_majority);
            let Some(accepted) = &accepted else { return false };
            let moved = master_report
                .as_ref()
                .is_none_or(|master_report| master_report.address() != accepted.address());
            *master_report = Some(accepted.clone());
            moved
        });
        accepted
    }

    /// Returns the master that one sentinel reports, or `None` if it knows none of that name.
    async fn query_one(
        &self,
        endpoint: &Endpoint,
        query: u64,
    ) -> RedisResult<Option<MasterReport>> {
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(self.limit));
        // Kept until the end, because it ends with this.
        let mut connected =
            endpoint.connect(ProtocolVersion::RESP2, None, &config, self.limit).await?;
        let connection = &mut connected.connection;
        // The epoch is queried first: if a failover ends between the two requests, the epoch is too
        // low for the address rather than too high. The first reply lacks the new address while a
        // failover that can no longer fail is still reconfiguring the other replicas.
        let about = |what: &str| {
            let mut command = redis::cmd("SENTINEL");
            command.arg(what).arg(&self.name);
            command
        };
        let state = about("MASTER").query_async::<HashMap<String, String>>(connection).await;
        let state = match state {
            Err(error) if is_unknown(&error) => return Ok(None),
            state => state?,
        };
        let address = about("GET-MASTER-ADDR-BY-NAME");
        let address: Option<(String, u16)> = address.query_async(connection).await?;
        let epoch = state.get("config-epoch").and_then(|epoch| epoch.parse().ok()).unwrap_or(0);
        Ok(address.map(|(host, port)| MasterReport { epoch, host, port, query }))
    }
}

fn is_unknown(error: &RedisError) -> bool {
    error.detail().is_some_and(|detail| detail.contains("No such master"))
}

/// Returns whether the server reports that it is a master.
pub(super) async fn is_master(connection: &mut MultiplexedConnection) -> RedisResult<bool> {
    let role: Vec<Value> = redis::cmd("ROLE").query_async(connection).await?;
    Ok(matches!(role.first(), Some(Value::BulkString(role)) if role == b"master"))
}
