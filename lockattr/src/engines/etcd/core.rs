//! Enters and leaves queues, on the store's own thread.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::batch::{by_claim, numbered, unexpected_response};
use super::call::TXN;
use super::config::Config;
use super::connection::ConnectionSlot;
use super::failure::{Failure, Kind};
use super::messages::TxnResponse;
use super::request_order::{OrderedRequest, RequestOrder};
use super::requests::{self, EnterReply, EnterRequest, MAX_OPERATIONS};
use super::session::{LeaseTiming, Session};
use crate::engines::sequenced::{Entered, Entry};
use crate::platform::sync::Mutex;
use crate::store::StoreError;

/// How often a request is sent at most: again if the session has ended, or has rewritten its key
/// meanwhile, or if another entry has the name.
const MAX_ATTEMPTS: usize = 4;

pub(super) struct Core {
    pub(super) connection: Arc<ConnectionSlot>,
    pub(super) current: Mutex<Option<Arc<Session>>>,
    pub(super) opening: tokio::sync::Mutex<()>,
    pub(super) order: RequestOrder,
    /// Whether the cluster's history was checked: once is enough.
    pub(super) history_checked: AtomicBool,
}

impl Core {
    pub(super) fn new(config: Config) -> Arc<Self> {
        let (current, opening, order, history_checked) = Default::default();
        let connection = ConnectionSlot::new(config);
        Arc::new(Self { connection, current, opening, order, history_checked })
    }

    pub(super) fn lease_timing(&self) -> LeaseTiming {
        LeaseTiming(self.connection.config.session_timeout)
    }

    pub(super) async fn enter(
        self: &Arc<Self>,
        request: &EnterRequest,
        mut turn: OrderedRequest,
    ) -> Result<Entered, StoreError> {
        turn.wait_for_earlier().await;
        let since = Instant::now();
        for _ in 0..MAX_ATTEMPTS {
            let session = self.open().await.map_err(|failure| failure.error)?;
            let (name, is_new) = session.names.of(request.token, &request.queues);
            let response = self.connection.send(TXN, &request.enter(&session, name)).await;
            let response: TxnResponse = match response {
                Ok(response) => response,
                Err(failure) if failure.kind == Kind::NoLease => {
                    session.end();
                    continue;
                }
                Err(failure) => {
                    match failure.kind {
                        Kind::Unknown => session.note_lost_request(),
                        Kind::NotSent if is_new => {
                            session.names.is_removed(request.token, &request.queues);
                        }
                        _ => {}
                    }
                    return Err(failure.error);
                }
            };
            match request.read(&session, name, &response) {
                Some(EnterReply::Entered { counter, mut queues }) => {
                    for (queue, entries) in request.queues.iter().zip(&mut queues) {
                        session.names.put_claims(queue, session.lease, entries);
                    }
                    // The entries are there, so no later error may report that nothing was sent.
                    self.ensure_alive(&session, since).await.map_err(StoreError::sent)?;
                    return Ok(Entered { session: session.lease.cast_unsigned(), counter, queues });
                }
                Some(EnterReply::NotEntered { left, key_revision }) => {
                    self.remove(left.iter()).await.map_err(|failure| failure.error.sent())?;
                    match key_revision {
                        Some(revision) => session.set_key_revision(revision),
                        None => session.end(),
                    }
                }
                Some(EnterReply::NameTaken) => {
                    session.names.is_taken(request.token, &request.queues);
                }
                None => return Err(unexpected_response()),
            }
        }
        Err(StoreError::new(format!(
            "{}: each session ended right after it was opened",
            self.connection.config.address
        )))
    }

    /// Ensures that the session lives for as long as a lease may, from `since`.
    pub(super) async fn ensure_alive(
        &self,
        session: &Session,
        since: Instant,
    ) -> Result<(), StoreError> {
        let until = since + self.lease_timing().max_ttl();
        if session.alive_until() < until {
            self.prove(session, until).await.map_err(|failure| failure.error)?;
        }
        Ok(())
    }

    /// Whether the entries of each claim are all there: one result for each claim, in order.
    pub(super) async fn confirm(
        &self,
        session: &Session,
        claims: &[Vec<Entry>],
    ) -> Vec<Result<bool, StoreError>> {
        let since = Instant::now();
        let entries = numbered(claims);
        let responses = entries.chunks(MAX_OPERATIONS).map(async |chunk| {
            let response = self.connection.send(TXN, &requests::confirm(&session.key, chunk)).await;
            response.map(|response: TxnResponse| requests::confirmed(chunk, &response))
        });
        let mut outcome = by_claim(claims.len(), &entries, join_all(responses).await);
        if let Err(error) = self.ensure_alive(session, since).await {
            let ended = session.is_over();
            let confirmed = outcome.iter_mut().filter(|one| matches!(one, Ok(true)));
            confirmed.for_each(|one| *one = if ended { Ok(false) } else { Err(error.clone()) });
        }
        outcome
    }

    /// Removes the entries of each claim. Returns whether all of them were there.
    pub(super) async fn leave(&self, claims: &[Vec<Entry>]) -> Vec<Result<bool, StoreError>> {
        let entries = numbered(claims);
        let responses = entries.chunks(MAX_OPERATIONS).map(async |chunk| {
            let response = self.connection.send(TXN, &requests::leave(chunk)).await;
            response.map(|response: TxnResponse| requests::left(chunk, &response))
        });
        by_claim(claims.len(), &entries, join_all(responses).await)
    }

    async fn remove(&self, entries: impl Iterator<Item = &Entry>) -> Result<(), Failure> {
        let entries: Vec<_> = entries.map(|entry| (entry, 0)).collect();
        if !entries.is_empty() {
            let _removed: TxnResponse =
                self.connection.send(TXN, &requests::leave(&entries)).await?;
        }
        Ok(())
    }

    /// Returns once no request with an unknown outcome can take effect any more.
    pub(super) async fn fence_lost_requests(&self) -> Result<(), StoreError> {
        match self.session() {
            Some(session) => {
                self.rewrite_session_key(&session).await.map_err(|failure| failure.error)
            }
            // When a session is over, its requests cannot take effect.
            None => Ok(()),
        }
    }

    async fn rewrite_session_key(&self, session: &Session) -> Result<(), Failure> {
        if session.lost_to_fence().is_none() {
            return Ok(());
        }
        let _one = session.fencing.lock().await;
        let Some(lost) = session.lost_to_fence() else { return Ok(()) };
        for _ in 0..MAX_ATTEMPTS {
            let request =
                requests::write_session_key(&session.key, session.lease, session.key_revision());
            let response: TxnResponse = self.connection.send(TXN, &request).await?;
            if response.succeeded {
                session.set_key_revision(response.header.unwrap_or_default().revision);
                session.note_fenced(lost);
                return Ok(());
            }
            match requests::key_revision_in(&response) {
                Some(revision) => session.set_key_revision(revision),
                None => {
                    session.end();
                    return Ok(());
                }
            }
        }
        Err(Failure::unknown(format!(
            "{}: another program writes the key of this session",
            self.connection.config.address
        )))
    }
}
