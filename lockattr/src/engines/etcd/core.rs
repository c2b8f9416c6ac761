//! Enters and leaves queues, on the store's own thread.

use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use tokio::time::Instant;

use super::batch::{by_claim, numbered, odd_answer};
use super::call::TXN;
use super::config::Config;
use super::connection::ConnectionSlot;
use super::failure::{Failure, Kind};
use super::messages::TxnResponse;
use super::request_order::{OrderedRequest, RequestOrder};
use super::requests::{self, EnterRequest, MAX_OPERATIONS};
use super::session::{LeaseTiming, Session};
use crate::engines::sequenced::{Entered, Entry};
use crate::store::StoreError;

/// How often a request is sent at most: again if the session has ended, or has rewritten its key
/// meanwhile.
const ROUNDS: usize = 3;

pub(super) struct Core {
    pub(super) connection: Arc<ConnectionSlot>,
    pub(super) current: Mutex<Option<Arc<Session>>>,
    pub(super) opening: tokio::sync::Mutex<()>,
    pub(super) order: RequestOrder,
}

impl Core {
    pub(super) fn new(config: Config) -> Arc<Self> {
        let (current, opening, order) = Default::default();
        Arc::new(Self { connection: ConnectionSlot::new(config), current, opening, order })
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
        for _ in 0..ROUNDS {
            let session = self.open().await.map_err(|failure| failure.error)?;
            let answer = self.connection.ask(TXN, &request.enter(&session)).await;
            let answer: TxnResponse = match answer {
                Ok(answer) => answer,
                Err(failure) if failure.kind == Kind::NoLease => {
                    session.end();
                    continue;
                }
                Err(failure) => {
                    if failure.kind == Kind::Unknown {
                        session.note_lost_request();
                    }
                    return Err(failure.error);
                }
            };
            let Some(queues) = request.queues_in(&answer) else { return Err(odd_answer()) };
            let ours = request.ours(&session, &queues);
            let numbers = || ours.iter().map(|entry| entry.sequence);
            let together = ours.len() == queues.len() && numbers().min() == numbers().max();
            if let Some(number) = numbers().max().filter(|_| together) {
                // The entries are there, so no later error may report that nothing was sent.
                self.ensure_alive(&session, since).await.map_err(StoreError::sent)?;
                return Ok(Entered { session: session.lease.cast_unsigned(), number, queues });
            }
            if answer.succeeded {
                return Err(odd_answer());
            }
            // Another program has removed some of them.
            self.remove(ours.iter()).await.map_err(|failure| failure.error.sent())?;
            match requests::key_revision_in(&answer) {
                Some(mark) => session.set_key_revision(mark),
                None => session.end(),
            }
        }
        Err(StoreError::new(format!(
            "{}: its sessions end as soon as they are made",
            self.connection.config.address
        )))
    }

    /// Ensures that the session lives for as long as a lease may, from `since`.
    pub(super) async fn ensure_alive(
        &self,
        session: &Session,
        since: Instant,
    ) -> Result<(), StoreError> {
        let until = since + self.lease_timing().keeps_for();
        if session.lives_until() < until {
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
        let asked = entries.chunks(MAX_OPERATIONS).map(async |chunk| {
            let answer = self.connection.ask(TXN, &requests::confirm(&session.key, chunk)).await;
            answer.map(|answer: TxnResponse| requests::confirmed(chunk, &answer))
        });
        let mut outcome = by_claim(claims.len(), &entries, join_all(asked).await);
        if let Err(error) = self.ensure_alive(session, since).await {
            let ended = session.is_over();
            let sure = outcome.iter_mut().filter(|one| matches!(one, Ok(true)));
            sure.for_each(|one| *one = if ended { Ok(false) } else { Err(error.clone()) });
        }
        outcome
    }

    /// Removes the entries of each claim. Returns whether all of them were there.
    pub(super) async fn leave(&self, claims: &[Vec<Entry>]) -> Vec<Result<bool, StoreError>> {
        let entries = numbered(claims);
        let asked = entries.chunks(MAX_OPERATIONS).map(async |chunk| {
            let answer = self.connection.ask(TXN, &requests::leave(chunk)).await;
            answer.map(|answer: TxnResponse| requests::left(&answer).collect())
        });
        by_claim(claims.len(), &entries, join_all(asked).await)
    }

    async fn remove(&self, entries: impl Iterator<Item = &Entry>) -> Result<(), Failure> {
        let entries: Vec<_> = entries.map(|entry| (entry, 0)).collect();
        if !entries.is_empty() {
            let _removed: TxnResponse =
                self.connection.ask(TXN, &requests::leave(&entries)).await?;
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
        for _ in 0..ROUNDS {
            let asked =
                requests::write_session_key(&session.key, session.lease, session.key_revision());
            let answer: TxnResponse = self.connection.ask(TXN, &asked).await?;
            if answer.succeeded {
                session.set_key_revision(answer.header.unwrap_or_default().revision);
                session.note_fenced(lost);
                return Ok(());
            }
            match requests::key_revision_in(&answer) {
                Some(mark) => session.set_key_revision(mark),
                None => {
                    session.end();
                    return Ok(());
                }
            }
        }
        Err(Failure::unknown(format!("{}: others write its keys", self.connection.config.address)))
    }
}
