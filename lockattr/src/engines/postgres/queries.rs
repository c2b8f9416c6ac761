//! Connections for requests: prepared statements, parameters, and the meaning of the answers.

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Statement};

use super::connection_slot::Role;
use crate::store::{
    AcquireOutcome, AcquireRequest, Claim, MAX_RECHECK, OwnerToken, ReleaseRequest, RenewRequest,
    Sharing, holder_of,
};
use crate::{FencingToken, Holder};

pub(super) struct Queries;

pub(super) struct Statements {
    acquire: Statement,
    release: Statement,
    renew: Statement,
    holder: Statement,
}

const ACQUIRE: &str = "select * from lockattr_acquire_1($1, $2, $3, $4, $5, $6, $7)";
const RELEASE: &str = "select lockattr_release_1($1, $2, $3, $4)";
const RENEW: &str = "select lockattr_renew_1($1, $2, $3, $4)";
const HOLDER: &str = "
    select value, (extract(epoch from ends - clock_timestamp()) * 1000000)::bigint from (
        select value, ends from lockattr_leases where name = $1 and ends > clock_timestamp()
        union all
        select value, ends from lockattr_shares where name = $1 and ends > clock_timestamp()
    ) as held order by ends limit 1";

impl Role for Queries {
    type Session = Arc<Statements>;

    async fn begin(&self, client: &Client, _place: i64) -> Result<Arc<Statements>, Error> {
        // In one round trip.
        let (acquire, release, renew, holder) = tokio::try_join!(
            client.prepare(ACQUIRE),
            client.prepare(RELEASE),
            client.prepare(RENEW),
            client.prepare(HOLDER)
        )?;
        Ok(Arc::new(Statements { acquire, release, renew, holder }))
    }
}

/// What the server's clock showed when it refused a claim, in microseconds.
pub(super) type Clock = Option<u64>;

pub(super) trait Query: Sync {
    type Output: Send;

    fn run(
        &self,
        statements: &Statements,
        client: &Client,
    ) -> impl Future<Output = Result<Self::Output, Error>> + Send;
}

/// Requests the locks of a claim. With `listener_lock`, the claim can queue.
pub(super) struct AcquireQuery<'a> {
    pub(super) request: &'a AcquireRequest,
    pub(super) listener_lock: Option<i64>,
}

impl Query for AcquireQuery<'_> {
    /// `None` if the answer is not one that the function can give.
    type Output = Option<(AcquireOutcome, Clock)>;

    async fn run(&self, statements: &Statements, client: &Client) -> Result<Self::Output, Error> {
        let AcquireRequest { claim, ttl, .. } = self.request;
        let (kind, permits) = match claim.sharing() {
            Sharing::Exclusive => ("x", 0),
            Sharing::Shared => ("s", 0),
            Sharing::Permits(permits) => ("p", i32::try_from(permits).unwrap_or(i32::MAX)),
        };
        let (token, value) = (bytes(claim.token()), claim.value().as_bytes());
        let (names, ttl) = (names_of(claim).collect::<Vec<_>>(), millis(*ttl));
        let params: [&(dyn ToSql + Sync); 7] =
            [&names, &&token[..], &value, &kind, &permits, &ttl, &self.listener_lock];
        let row = client.query_one(&statements.acquire, &params).await?;
        let row = AcquireRow {
            counter: row.try_get(0)?,
            contended: row.try_get(1)?,
            value: row.try_get(2)?,
            remains: row.try_get(3)?,
            clock: row.try_get(4)?,
        };
        Ok(granted(&row, self.listener_lock.is_some()))
    }
}

/// Queries the holder of a lock; of several, the one whose lease ends first.
pub(super) struct HolderQuery<'a>(pub(super) &'a str);

impl Query for HolderQuery<'_> {
    type Output = Option<Holder>;

    async fn run(&self, statements: &Statements, client: &Client) -> Result<Option<Holder>, Error> {
        let row = client.query_opt(&statements.holder, &[&self.0.as_bytes()]).await?;
        row.map(|row| Ok(holder_of(row.try_get(0)?, Some(row.try_get(1)?)))).transpose()
    }
}

/// A request that many claims can share.
pub(super) trait BatchItem: Sync {
    fn claim(&self) -> &Arc<Claim>;

    /// The TTL or delay, in milliseconds.
    fn time(&self) -> i64;

    fn statement(statements: &Statements) -> &Statement;
}

impl BatchItem for RenewRequest {
    fn claim(&self) -> &Arc<Claim> {
        &self.claim
    }

    fn time(&self) -> i64 {
        millis(self.ttl)
    }

    fn statement(statements: &Statements) -> &Statement {
        &statements.renew
    }
}

/// Releases locks, now or after a delay.
impl BatchItem for ReleaseRequest {
    fn claim(&self) -> &Arc<Claim> {
        &self.claim
    }

    fn time(&self) -> i64 {
        if self.after.is_zero() { 0 } else { millis(self.after) }
    }

    fn statement(statements: &Statements) -> &Statement {
        &statements.release
    }
}

/// Whether each of these claims held its locks.
impl<I: BatchItem> Query for [&I] {
    type Output = Vec<bool>;

    async fn run(&self, statements: &Statements, client: &Client) -> Result<Vec<bool>, Error> {
        // A message has no room for more.
        let size = |item: &&I| i32::try_from(item.claim().keys().len()).unwrap_or(i32::MAX);
        let sizes: Vec<_> = self.iter().map(size).collect();
        let names: Vec<_> = self.iter().flat_map(|item| names_of(item.claim())).collect();
        let tokens: Vec<_> = self.iter().map(|item| bytes(item.claim().token())).collect();
        let tokens: Vec<_> = tokens.iter().map(|token| &token[..]).collect();
        let times: Vec<_> = self.iter().map(|item| item.time()).collect();
        let params: [&(dyn ToSql + Sync); 4] = [&sizes, &names, &tokens, &times];
        client.query_one(I::statement(statements), &params).await?.try_get(0)
    }
}

/// The columns of the answer of `acquire.sql`.
pub(super) struct AcquireRow<'a> {
    pub(super) counter: Option<i64>,
    pub(super) contended: Option<bool>,
    pub(super) value: Option<&'a [u8]>,
    pub(super) remains: Option<i64>,
    pub(super) clock: Option<i64>,
}

/// Reads the answer of `acquire.sql`, and the server's clock in it.
pub(super) fn granted(row: &AcquireRow<'_>, queued: bool) -> Option<(AcquireOutcome, Clock)> {
    let AcquireRow { counter, contended, value, remains, clock } = *row;
    if let Some(counter) = counter {
        let fencing = FencingToken::read(u64::try_from(counter).ok()?)?;
        return Some((AcquireOutcome::Acquired { fencing, contended: contended? }, None));
    }
    let clock = u64::try_from(clock?).ok();
    let holder = value.zip(remains).map(|(value, remains)| holder_of(value, Some(remains)));
    let queued = queued.then(|| match remains.and_then(|micros| u64::try_from(micros).ok()) {
        // A millisecond later the lease is certainly over, by either clock.
        Some(left) => MAX_RECHECK.min(Duration::from_micros(left) + Duration::from_millis(1)),
        None => MAX_RECHECK,
    });
    Some((AcquireOutcome::Held { holder: holder.map(Box::new), queued }, clock))
}

/// Bytes: a PostgreSQL text cannot contain a zero byte, and compares by a language's rules.
fn names_of(claim: &Claim) -> impl Iterator<Item = &[u8]> {
    claim.keys().iter().map(|key| key.name().as_bytes())
}

fn bytes(token: OwnerToken) -> [u8; 16] {
    // This parses what `to_string` has just written.
    u128::from_str_radix(&token.to_string(), 16).unwrap_or_default().to_be_bytes()
}

/// A century: more than any lease, and within the range of a timestamp.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Rounds down: the lease ends a little earlier, by less than the drift that each allows for.
fn millis(ttl: Duration) -> i64 {
    i64::try_from(ttl.min(LONGEST).as_millis()).unwrap_or(i64::MAX).max(1)
}
