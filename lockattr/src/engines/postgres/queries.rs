//! Connections for requests: the requests that share statements, and single queries.

use std::sync::Arc;

use tokio_postgres::{Client, Error};

use super::connection_slot::{ConnectionSlot, LiveConnection, Role};
use super::failure::Failure;
use super::requests::DatabaseRequest;
use super::schema::Schema;
use super::session::is_true;
use super::statements::{SWEEP, Statements};
use crate::Holder;
use crate::engines::sql::Requests;
use crate::store::{StoreError, holder_of};

/// How often a conflicting statement is repeated.
pub(super) const MAX_ATTEMPTS: usize = 3;

/// Connections for requests about the locks of this schema.
pub(super) struct Queries(pub(super) Schema);

/// The state of a connection for requests.
pub(super) struct QuerySession {
    pub(super) statements: Statements,
    pub(super) requests: Arc<Requests<DatabaseRequest>>,
}

impl Role for Queries {
    type Session = QuerySession;

    async fn begin(&self, client: &Client, _place: i64) -> Result<QuerySession, Error> {
        Ok(QuerySession {
            statements: Statements::prepare(client, &self.0).await?,
            requests: Arc::default(),
        })
    }

    async fn check(&self, client: &Client, _session: &QuerySession) -> Result<bool, Error> {
        Ok(is_true(&client.simple_query(&self.0.sql(SWEEP)).await?))
    }
}

/// One statement.
pub(super) trait Query: Sync {
    type Output: Send;

    fn run(
        &self,
        statements: &Statements,
        client: &Client,
    ) -> impl Future<Output = Result<Self::Output, Error>> + Send;
}

impl ConnectionSlot<Queries> {
    /// Runs one statement, beside the requests.
    pub(super) async fn query<Q: Query>(
        self: &Arc<Self>,
        query: &Q,
    ) -> Result<Q::Output, StoreError> {
        let live = self.get().await?;
        self.repeated(&live, query).await
    }

    /// Runs one statement.
    pub(super) async fn once<Q: Query + ?Sized>(
        &self,
        live: &LiveConnection<Queries>,
        query: &Q,
    ) -> Result<Q::Output, Failure> {
        self.finish(live, query.run(&live.session.statements, &live.client)).await
    }

    /// Runs one statement, and repeats it if it conflicted with another transaction.
    pub(super) async fn repeated<Q: Query + ?Sized>(
        &self,
        live: &LiveConnection<Queries>,
        query: &Q,
    ) -> Result<Q::Output, StoreError> {
        let mut attempts = 0;
        loop {
            match self.once(live, query).await {
                Err(Failure { is_conflict: true, .. }) if attempts < MAX_ATTEMPTS => attempts += 1,
                outcome => return outcome.map_err(|failure| failure.error),
            }
        }
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
