//! Connections for questions: what is prepared on them, what goes in, and what the answers mean.

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

/// A connection that is asked.
pub(super) struct Queries;

/// What is prepared on each of them.
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
        // In one trip.
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

/// A question in one statement.
pub(super) trait Query: Sync {
    type Answer: Send;

    /// Asks it, on a connection with these statements.
    fn ask(
        &self,
        to: &Statements,
        client: &Client,
    ) -> impl Future<Output = Result<Self::Answer, Error>> + Send;
}

/// For the locks of a claim; one with an ear waits in the queue.
pub(super) struct AcquireQuery<'a> {
    pub(super) asked: &'a AcquireRequest,
    pub(super) ear: Option<i64>,
}

impl Query for AcquireQuery<'_> {
    /// None if the server says what its function never does.
    type Answer = Option<(AcquireOutcome, Clock)>;

    async fn ask(&self, to: &Statements, client: &Client) -> Result<Self::Answer, Error> {
        let AcquireRequest { claim, ttl, .. } = self.asked;
        let (kind, permits) = match claim.sharing() {
            Sharing::Exclusive => ("x", 0),
            Sharing::Shared => ("s", 0),
            Sharing::Permits(permits) => ("p", i32::try_from(permits).unwrap_or(i32::MAX)),
        };
        let (token, value) = (bytes(claim.token()), claim.value().as_bytes());
        let (names, ttl) = (names_of(claim).collect::<Vec<_>>(), millis(*ttl));
        let params: [&(dyn ToSql + Sync); 7] =
            [&names, &&token[..], &value, &kind, &permits, &ttl, &self.ear];
        let row = client.query_one(&to.acquire, &params).await?;
        let said = AcquireRow {
            number: row.try_get(0)?,
            contended: row.try_get(1)?,
            value: row.try_get(2)?,
            remains: row.try_get(3)?,
            clock: row.try_get(4)?,
        };
        Ok(granted(&said, self.ear.is_some()))
    }
}

/// Who has the lock of this name; of several, whose lease ends first.
pub(super) struct HolderQuery<'a>(pub(super) &'a str);

impl Query for HolderQuery<'_> {
    type Answer = Option<Holder>;

    async fn ask(&self, to: &Statements, client: &Client) -> Result<Option<Holder>, Error> {
        let row = client.query_opt(&to.holder, &[&self.0.as_bytes()]).await?;
        row.map(|row| Ok(holder_of(row.try_get(0)?, Some(row.try_get(1)?)))).transpose()
    }
}

/// What can be asked about many claims at once.
pub(super) trait BatchItem: Sync {
    fn claim(&self) -> &Arc<Claim>;

    /// In milliseconds, for how long.
    fn time(&self) -> i64;

    fn statement(to: &Statements) -> &Statement;
}

/// Makes leases run on.
impl BatchItem for RenewRequest {
    fn claim(&self) -> &Arc<Claim> {
        &self.claim
    }

    fn time(&self) -> i64 {
        millis(self.ttl)
    }

    fn statement(to: &Statements) -> &Statement {
        &to.renew
    }
}

/// Gives locks back, now or so much later.
impl BatchItem for ReleaseRequest {
    fn claim(&self) -> &Arc<Claim> {
        &self.claim
    }

    fn time(&self) -> i64 {
        if self.after.is_zero() { 0 } else { millis(self.after) }
    }

    fn statement(to: &Statements) -> &Statement {
        &to.release
    }
}

/// Whether each of these had its locks.
impl<I: BatchItem> Query for [&I] {
    type Answer = Vec<bool>;

    async fn ask(&self, to: &Statements, client: &Client) -> Result<Vec<bool>, Error> {
        // As many as fit into a message.
        let size = |item: &&I| i32::try_from(item.claim().keys().len()).unwrap_or(i32::MAX);
        let sizes: Vec<_> = self.iter().map(size).collect();
        let names: Vec<_> = self.iter().flat_map(|item| names_of(item.claim())).collect();
        let tokens: Vec<_> = self.iter().map(|item| bytes(item.claim().token())).collect();
        let tokens: Vec<_> = tokens.iter().map(|token| &token[..]).collect();
        let times: Vec<_> = self.iter().map(|item| item.time()).collect();
        let params: [&(dyn ToSql + Sync); 4] = [&sizes, &names, &tokens, &times];
        client.query_one(I::statement(to), &params).await?.try_get(0)
    }
}

/// The columns of what `acquire.sql` returns.
pub(super) struct AcquireRow<'a> {
    pub(super) number: Option<i64>,
    pub(super) contended: Option<bool>,
    pub(super) value: Option<&'a [u8]>,
    pub(super) remains: Option<i64>,
    pub(super) clock: Option<i64>,
}

/// Reads the answer of `acquire.sql`, and what the server's clock showed.
pub(super) fn granted(said: &AcquireRow<'_>, queued: bool) -> Option<(AcquireOutcome, Clock)> {
    let AcquireRow { number, contended, value, remains, clock } = *said;
    if let Some(number) = number {
        let fencing = FencingToken::read(u64::try_from(number).ok()?)?;
        return Some((AcquireOutcome::Acquired { fencing, contended: contended? }, None));
    }
    let clock = u64::try_from(clock?).ok();
    let holder = value.zip(remains).map(|(value, remains)| holder_of(value, Some(remains)));
    let queued = queued.then(|| match remains.and_then(|micros| u64::try_from(micros).ok()) {
        // A moment later it is certainly over, by either clock.
        Some(left) => MAX_RECHECK.min(Duration::from_micros(left) + Duration::from_millis(1)),
        None => MAX_RECHECK,
    });
    Some((AcquireOutcome::Held { holder: holder.map(Box::new), queued }, clock))
}

/// Bytes, because PostgreSQL keeps no zero in a text, and compares texts by the rules of a language.
fn names_of(claim: &Claim) -> impl Iterator<Item = &[u8]> {
    claim.keys().iter().map(|key| key.name().as_bytes())
}

fn bytes(token: OwnerToken) -> [u8; 16] {
    // It reads what was just written.
    u128::from_str_radix(&token.to_string(), 16).unwrap_or_default().to_be_bytes()
}

/// A century, which is more than any lease and less than a timestamp holds.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Rounded down: the server then lets go a little earlier than asked, by less than the drift that
/// every lease allows for.
fn millis(ttl: Duration) -> i64 {
    i64::try_from(ttl.min(LONGEST).as_millis()).unwrap_or(i64::MAX).max(1)
}
