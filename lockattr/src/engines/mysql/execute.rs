//! The statements that execute requests, and what their replies mean.

use std::borrow::Cow;

use mysql_async::{Error, Params, Row};
use tokio::time::timeout;

use super::connection::Client;
use super::failure::Failure;
use super::requests::{DatabaseReply, DatabaseRequest};
use super::{free, reply, request};
use crate::store::{AcquireRequest, OwnerToken, ReleaseRequest};

/// How often a statement is run at most, if it is the victim of deadlocks.
const MAX_DEADLOCKS: usize = 10;

const RELEASED: Failure = Failure::Unexpected("a release");

/// A statement and its parameters.
pub(super) type Sql = (Cow<'static, str>, Params);

impl Client<'_> {
    /// Executes requests of one kind.
    pub(super) async fn execute(
        &mut self,
        requests: &[&DatabaseRequest],
    ) -> Result<Vec<DatabaseReply>, Failure> {
        match requests {
            [DatabaseRequest::Insert(..), ..] => self.insert(requests).await,
            [DatabaseRequest::Release(..), ..] => self.release(requests).await,
            [DatabaseRequest::Renew(_), ..] => {
                let renewals = requests.iter().filter_map(|request| match request {
                    DatabaseRequest::Renew(renewal) => Some(renewal),
                    _ => None,
                });
                let rows = self.rows(request::renew(renewals)).await?;
                let held = flags(rows, requests.len())?;
                Ok(held.into_iter().map(DatabaseReply::Held).collect())
            }
            [DatabaseRequest::Acquire(acquire, listener)] => {
                let rows = self.rows(request::acquire(acquire, listener)).await?;
                Ok(vec![DatabaseReply::Rows(rows)])
            }
            [DatabaseRequest::Query { statement, params, .. }] => {
                let rows = self.rows(((*statement).into(), params.clone())).await?;
                Ok(vec![DatabaseReply::Rows(rows)])
            }
            [DatabaseRequest::Sweep] => self.sweep().await,
            // No other request joins one of these.
            _ => Ok(Vec::new()),
        }
    }

    async fn insert(
        &mut self,
        requests: &[&DatabaseRequest],
    ) -> Result<Vec<DatabaseReply>, Failure> {
        let all = requests.iter().filter_map(|request| match request {
            DatabaseRequest::Insert(acquire, listener) => Some((acquire, listener)),
            _ => None,
        });
        let (acquires, listeners): (Vec<&AcquireRequest>, Vec<_>) = all.unzip();
        // They are all the same, unless it has just changed.
        let listener = listeners.last().map_or("", |listener| &***listener);
        let is_mariadb = self.live()?.is_mariadb;
        let rows = self.rows(free::acquire(&acquires, listener, is_mariadb)).await?;
        let numbers = free::acquired(rows, &acquires, is_mariadb)
            .ok_or(Failure::Unexpected("an acquisition"))?;
        Ok(numbers.into_iter().map(DatabaseReply::Inserted).collect())
    }

    /// Releases locks that no claim waits for by one statement, and the others by a procedure.
    async fn release(
        &mut self,
        requests: &[&DatabaseRequest],
    ) -> Result<Vec<DatabaseReply>, Failure> {
        let releases = requests.iter().filter_map(|request| match request {
            DatabaseRequest::Release(release, plain) => Some((release, *plain)),
            _ => None,
        });
        let releases: Vec<(&ReleaseRequest, bool)> = releases.collect();
        let plain = releases.iter().filter(|(_, plain)| *plain).map(|(release, _)| *release);
        let released = self.release_free(&plain.collect::<Vec<_>>()).await?;
        let mut held: Vec<bool> =
            releases.iter().map(|(release, _)| released.contains(&release.claim.token())).collect();
        let rest = || releases.iter().zip(&held).filter(|(_, held)| !**held);
        let count = rest().count();
        if count > 0 {
            let (statement, params) = request::release(rest().map(|((release, _), _)| *release));
            let rows = match count {
                1 => self.rows((statement, params)).await?,
                // Not again: a part of it may be committed.
                _ => self.exec(&statement, params).await?,
            };
            let flags = match count {
                1 => vec![request::held_one(rows).ok_or(RELEASED)?],
                _ => flags(rows, count)?,
            };
            let left = held.iter_mut().filter(|held| !**held);
            left.zip(flags).for_each(|(held, flag)| *held = flag);
        }
        Ok(held.into_iter().map(DatabaseReply::Held).collect())
    }

    /// Releases those of these locks that no claim waits for, and returns their owner tokens.
    async fn release_free(
        &mut self,
        releases: &[&ReleaseRequest],
    ) -> Result<Vec<OwnerToken>, Failure> {
        match releases {
            [] => Ok(Vec::new()),
            [one] => {
                let is_released = self.affected(free::release_one(one)).await? == 1;
                Ok(if is_released { vec![one.claim.token()] } else { Vec::new() })
            }
            several => {
                let is_mariadb = self.live()?.is_mariadb;
                let rows = self.rows(free::release_several(several, is_mariadb)).await?;
                free::released(rows, is_mariadb).ok_or(RELEASED)
            }
        }
    }

    async fn sweep(&mut self) -> Result<Vec<DatabaseReply>, Failure> {
        let more = match self.exec("CALL lockattr_v2_sweep_2()", Params::Empty).await {
            Ok(rows) => request::held_one(rows).ok_or(Failure::Unexpected("a sweep"))?,
            Err(failure) if failure.ends_connection() => return Err(failure),
            // The next heartbeat tries again.
            Err(failure) => {
                let is_conflict = failure.is_conflict();
                let config = &self.connection.slot.config;
                let error = failure.error(config);
                if !is_conflict {
                    config.sweep_warning.warn_once(&config.address, &error);
                }
                false
            }
        };
        Ok(vec![DatabaseReply::Swept(more)])
    }

    /// Runs a statement, again while it is the victim of a deadlock.
    async fn rows(&mut self, statement: Sql) -> Result<Vec<Row>, Failure> {
        let (statement, params) = statement;
        for _ in 1..MAX_DEADLOCKS {
            match self.exec(&statement, params.clone()).await {
                Err(failure) if failure.is_deadlock() => {}
                outcome => return outcome,
            }
        }
        self.exec(&statement, params).await
    }

    /// Runs a statement without rows. Returns how many it has changed.
    async fn affected(&mut self, statement: Sql) -> Result<u64, Failure> {
        self.rows(statement).await?;
        Ok(self.live()?.connection.affected_rows())
    }

    async fn exec(&mut self, statement: &str, params: Params) -> Result<Vec<Row>, Failure> {
        let limit = self.connection.slot.config.timing.response_timeout;
        self.is_broken = true;
        let reply =
            timeout(limit, reply::exec(&mut self.live()?.connection, statement, params)).await;
        self.replied(reply.map_err(|_| Failure::Silence)?)
    }

    /// Records a reply of the server, or the end of the connection.
    fn replied<T>(&mut self, reply: Result<T, Error>) -> Result<T, Failure> {
        let reply = reply.map_err(Failure::Error);
        self.is_broken = reply.as_ref().is_err_and(Failure::ends_connection);
        if !self.is_broken {
            self.connection.slot.last_reply.record();
        }
        reply
    }
}

fn flags(rows: Vec<Row>, count: usize) -> Result<Vec<bool>, Failure> {
    request::held(rows)
        .filter(|held| held.len() == count)
        .ok_or(Failure::Unexpected("renewals or releases"))
}
