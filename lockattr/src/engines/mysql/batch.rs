//! Sends a batch of requests in one or two statements, and distributes the replies.

use mysql_async::prelude::Queryable;
use mysql_async::{Error, Params, Row};
use tokio::time::{Duration, timeout};

use super::config::Config;
use super::connect::{self, Live, error_from};
use super::job::{Job, SendPolicy, Statement};
use super::{free, request};
use crate::FencingToken;
use crate::store::last_reply::LastReply;
use crate::store::{AcquireRequest, ReleaseRequest, StoreError};

/// The server chose this transaction as the victim of a deadlock.
const DEADLOCK_CODES: [u16; 2] = [1213, 1020];

/// How often a statement is run at most, if it is the victim of deadlocks.
const MAX_DEADLOCKS: usize = 10;

/// What the server replied to a batch, for each request in turn.
pub(super) enum Replies {
    /// Whether each lease was renewed. The second answer counts as the first would.
    Renewed(Vec<bool>),
    Held(Vec<Result<bool, StoreError>>),
    Numbers(Vec<Option<FencingToken>>),
    Rows(Vec<Row>, Option<StoreError>),
}

impl Replies {
    /// The same, as the replies to a second attempt, if the first one failed like this: it may have
    /// been executed.
    pub(super) fn after(self, first: Option<StoreError>) -> Self {
        let Some(error) = first else { return self };
        let unknown = |held: Result<bool, StoreError>| match held {
            Ok(false) => Err(error.clone()),
            held => held,
        };
        match self {
            Self::Held(held) => Self::Held(held.into_iter().map(unknown).collect()),
            Self::Rows(rows, _) => Self::Rows(rows, Some(error)),
            // An acquire can be repeated.
            Self::Numbers(numbers) => Self::Numbers(numbers),
            Self::Renewed(renewed) => Self::Renewed(renewed),
        }
    }
}

/// Why a batch has no replies.
pub(super) struct BatchError {
    pub(super) error: StoreError,
    /// Whether the server refused it, over a connection that still works.
    pub(super) refused: bool,
}

impl From<StoreError> for BatchError {
    fn from(error: StoreError) -> Self {
        Self { error, refused: false }
    }
}

/// Why a statement has no reply.
pub(super) enum Failure {
    Error(Error),
    /// None came within the response timeout, counted from when it was sent: the connection serves
    /// one statement at a time, so what waits behind it is not the server's silence.
    Silence,
    Unexpected,
}

impl Failure {
    pub(super) fn ends_connection(&self) -> bool {
        match self {
            Self::Error(error) => connect::ends_connection(error),
            Self::Silence => true,
            Self::Unexpected => false,
        }
    }

    pub(super) fn error(self, config: &Config) -> StoreError {
        let address = &config.address;
        match self {
            Self::Error(error) => error_from(address, error),
            Self::Silence => {
                let limit = config.timing.response_timeout;
                StoreError::new(format!("no answer from {address} within {limit:?}"))
            }
            Self::Unexpected => unexpected_reply(),
        }
    }
}

pub(super) fn unexpected_reply() -> StoreError {
    StoreError::new("the server sent an unexpected reply")
}

/// A connection, and how long it may be silent.
pub(super) struct LiveSession<'a> {
    live: &'a mut Live,
    limit: Duration,
    last_reply: &'a LastReply,
}

impl<'a> LiveSession<'a> {
    pub(super) fn new(live: &'a mut Live, limit: Duration, last_reply: &'a LastReply) -> Self {
        Self { live, limit, last_reply }
    }

    /// Sends a batch of one kind. Notifications for what it acquires go to `listener`.
    pub(super) async fn perform(
        &mut self,
        batch: &[Job],
        listener: &str,
    ) -> Result<Replies, Failure> {
        match &batch[0] {
            Job::Renew(..) => {
                let renewals = batch.iter().filter_map(|job| match job {
                    Job::Renew(renewal, _) => Some(renewal),
                    _ => None,
                });
                let rows = self.rows(request::renew(renewals)).await?;
                Ok(Replies::Renewed(flags(rows, batch.len())?))
            }
            Job::Release(..) => self.release(batch).await,
            Job::Acquire(..) => self.acquire(batch, listener).await,
            Job::Query(query, ..) => {
                let statement = (query.statement.into(), query.params.clone());
                Ok(Replies::Rows(self.rows(statement).await?, None))
            }
        }
    }

    async fn acquire(&mut self, batch: &[Job], listener: &str) -> Result<Replies, Failure> {
        let requests: Vec<&AcquireRequest> = batch
            .iter()
            .filter_map(|job| match job {
                Job::Acquire(request, ..) => Some(request),
                _ => None,
            })
            .collect();
        let is_mariadb = self.live.is_mariadb;
        let rows = self.rows(free::acquire(&requests, listener, is_mariadb)).await?;
        let numbers = free::acquired(rows, &requests, is_mariadb).ok_or(Failure::Unexpected)?;
        Ok(Replies::Numbers(numbers))
    }

    /// Releases locks that no claim waits for by a plain statement, and the others by a procedure.
    async fn release(&mut self, batch: &[Job]) -> Result<Replies, Failure> {
        let releases = batch.iter().filter_map(|job| match job {
            Job::Release(release, plain, _) => Some((release, *plain)),
            _ => None,
        });
        let releases: Vec<(&ReleaseRequest, bool)> = releases.collect();
        let plain: Vec<&ReleaseRequest> =
            releases.iter().filter(|(_, plain)| *plain).map(|(release, _)| *release).collect();
        let mut released = Vec::new();
        if let ([one], [_]) = (&plain[..], &releases[..]) {
            if self.affected(free::release_one(one)).await? == 1 {
                released.push(one.claim.token());
            }
        } else if self.live.is_mariadb && plain.len() == releases.len() {
            let rows = self.rows(free::release_several(&plain)).await?;
            released = free::released(rows).ok_or(Failure::Unexpected)?;
        }
        let mut held: Vec<bool> =
            releases.iter().map(|(release, _)| released.contains(&release.claim.token())).collect();
        let rest = || releases.iter().zip(&held).filter(|(_, held)| !**held);
        let count = rest().count();
        if count > 0 {
            let statement = request::release(rest().map(|((release, _), _)| *release));
            let mut flags = flags(self.rows(statement).await?, count)?.into_iter();
            for held in held.iter_mut().filter(|held| !**held) {
                *held = flags.next().unwrap_or_default();
            }
        }
        Ok(Replies::Held(held.into_iter().map(Ok).collect()))
    }

    async fn rows(&mut self, statement: Statement) -> Result<Vec<Row>, Failure> {
        let (statement, params) = statement;
        for _ in 1..MAX_DEADLOCKS {
            match self.exec(&statement, params.clone()).await {
                Err(Failure::Error(Error::Server(error)))
                    if DEADLOCK_CODES.contains(&error.code) => {}
                outcome => return outcome,
            }
        }
        self.exec(&statement, params).await
    }

    /// Runs a statement without rows. Returns how many it has changed.
    async fn affected(&mut self, statement: Statement) -> Result<u64, Failure> {
        self.rows(statement).await?;
        Ok(self.live.connection.affected_rows())
    }

    async fn exec(&mut self, statement: &str, params: Params) -> Result<Vec<Row>, Failure> {
        let reply = timeout(self.limit, self.live.connection.exec(statement, params)).await;
        match reply.map_err(|_| Failure::Silence)? {
            Ok(rows) => {
                self.last_reply.record();
                Ok(rows)
            }
            Err(error) => {
                if matches!(error, Error::Server(_)) {
                    self.last_reply.record();
                }
                Err(Failure::Error(error))
            }
        }
    }
}

fn flags(rows: Vec<Row>, count: usize) -> Result<Vec<bool>, Failure> {
    request::held(rows).filter(|held| held.len() == count).ok_or(Failure::Unexpected)
}

/// Gives each caller its answer.
pub(super) fn answer(batch: Vec<Job>, replies: Result<Replies, BatchError>) {
    let (mut held, mut numbers, mut rows): (Vec<_>, Vec<_>, _) = Default::default();
    let error = match replies {
        Ok(Replies::Renewed(replies)) => {
            held = replies.into_iter().map(Ok).collect();
            unexpected_reply()
        }
        Ok(Replies::Held(replies)) => {
            held = replies;
            unexpected_reply()
        }
        Ok(Replies::Numbers(replies)) => {
            numbers = replies;
            unexpected_reply()
        }
        Ok(Replies::Rows(replies, first)) => {
            rows = Some((replies, first));
            unexpected_reply()
        }
        Err(BatchError { error, .. }) => error,
    };
    let (mut held, mut numbers) = (held.into_iter(), numbers.into_iter());
    for job in batch {
        // A caller that has gone receives nothing.
        let _no_receiver = match job {
            Job::Renew(_, reply) | Job::Release(.., reply) => {
                reply.send(held.next().unwrap_or_else(|| Err(error.clone()))).is_ok()
            }
            Job::Acquire(.., reply) => {
                reply.send(numbers.next().ok_or_else(|| error.clone())).is_ok()
            }
            Job::Query(query, _, reply) => reply
                .send(match rows.take() {
                    Some((rows, Some(first)))
                        if query.policy == SendPolicy::NoMeansUnknown && !all_held(&rows) =>
                    {
                        Err(first)
                    }
                    Some((rows, _)) => Ok(rows),
                    None => Err(error.clone()),
                })
                .is_ok(),
        };
    }
}

/// Whether each answer of a batch is yes.
fn all_held(rows: &[Row]) -> bool {
    let flags = rows.first().and_then(|row| row.get::<Vec<u8>, _>(0)).unwrap_or_default();
    !flags.contains(&b'0')
}
