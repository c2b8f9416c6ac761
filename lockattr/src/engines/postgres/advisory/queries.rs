//! The statements of a session, which all run in the server process that holds the locks.

use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql, Type};

use super::super::failure::{Failure, failure_of, unless_silent};
use super::super::pooler;
use super::super::transaction::HAS;
use super::session::Session;
use super::sql;
use crate::store::{Claim, LockKey, Sharing};

impl Session {
    /// Waits for all locks of a claim, without a limit. Returns the number, the server's
    /// clock, and whether others wait.
    pub(super) async fn lock(
        &self,
        claim: &Claim,
        ttl: Duration,
    ) -> Result<(i64, i64, bool), tokio_postgres::Error> {
        self.prepare_for(claim, ttl);
        let names: Vec<_> = claim.keys().iter().map(LockKey::name).collect();
        let shared = claim.sharing() == Sharing::Shared;
        let row = match &names[..] {
            [name] => {
                let params: [&(dyn ToSql + Sync); 3] = [name, &shared, &self.pid];
                self.client.query_one(&self.statements.lock_one, &params).await?
            }
            _ => {
                let params: [&(dyn ToSql + Sync); 3] = [&names, &shared, &self.pid];
                self.client.query_one(&self.statements.lock_many, &params).await?
            }
        };
        self.note_reply();
        Ok((row.try_get(1)?, row.try_get(2)?, row.try_get(3)?))
    }

    pub(super) async fn lock_number(&self, name: &str) -> Result<i64, Failure> {
        let params: [(&(dyn ToSql + Sync), Type); 1] = [(&name, Type::TEXT)];
        let row = self.within_timeout(self.client.query_typed_one(sql::NUMBER, &params)).await?;
        self.read(&row, 1)
    }

    /// The number of an acquisition, if the server process `pid` holds the lock `number`.
    pub(super) async fn count_if_held(
        &self,
        number: i64,
        pid: i32,
    ) -> Result<Option<i64>, Failure> {
        let statement = format!("select pg_backend_pid(), case when {HAS} then {} end", sql::COUNT);
        let params: [(&(dyn ToSql + Sync), Type); 2] = [(&number, Type::INT8), (&pid, Type::INT4)];
        let row = self.within_timeout(self.client.query_typed_one(&statement, &params)).await?;
        self.read(&row, 1)
    }

    /// Runs statements without parameters, in one round trip.
    pub(super) async fn run(&self, statement: &str) -> Result<(), Failure> {
        self.within_timeout(self.client.batch_execute(statement)).await
    }

    /// The answer to a request. Closes the session if the error ends it.
    pub(super) async fn within_timeout<T>(
        &self,
        request: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Failure> {
        let outcome = unless_silent(&self.config, &self.last_reply, request).await;
        match &outcome {
            Err(failure) if failure.ends_connection => self.close(),
            // An error is an answer too.
            Ok(_) | Err(_) => self.note_reply(),
        }
        outcome
    }

    /// Reads a column of an answer, which must come from the process that holds the locks.
    pub(super) fn read<T>(&self, row: &Row, column: usize) -> Result<T, Failure>
    where
        T: for<'a> FromSql<'a>,
    {
        let failed = |error| failure_of(&self.config.address, error);
        if row.try_get::<_, i32>(0).map_err(failed)? != self.pid {
            self.close();
            return Err(pooler::refused(&self.config.address).into());
        }
        row.try_get(column).map_err(failed)
    }
}
