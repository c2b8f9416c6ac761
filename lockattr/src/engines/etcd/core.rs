//! Entering lines, and leaving them: what is asked on the store's own thread.

use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use tokio::time::Instant;

use super::batch::{by_claim, numbered, odd_answer};
use super::call::TXN;
use super::config::Config;
use super::failure::{Failure, Kind};
use super::link::Link;
use super::messages::TxnResponse;
use super::order::{Order, Turn};
use super::requests::{self, MOST, Wanted};
use super::session::{Session, Span};
use crate::engines::ordered::{Entered, Entry};
use crate::store::StoreError;

/// How often a question to enter is put anew, at most: a session that has ended, and one that wrote
/// its key again meanwhile.
const ROUNDS: usize = 3;

pub(super) struct Core {
    pub(super) link: Link,
    pub(super) current: Mutex<Option<Arc<Session>>>,
    pub(super) opening: tokio::sync::Mutex<()>,
    pub(super) order: Order,
}

impl Core {
    pub(super) fn new(config: Config) -> Arc<Self> {
        let (current, opening, order) = Default::default();
        Arc::new(Self { link: Link::new(config), current, opening, order })
    }

    pub(super) fn span(&self) -> Span {
        Span(self.link.config.session_timeout)
    }

    pub(super) async fn enter(
        self: &Arc<Self>,
        contended: &Wanted,
        mut turn: Turn,
    ) -> Result<Entered, StoreError> {
        turn.comes().await;
        let since = Instant::now();
        for _ in 0..ROUNDS {
            let session = self.open().await.map_err(|failure| failure.error)?;
            let answer = self.link.ask(TXN, &contended.enter(&session)).await;
            let answer: TxnResponse = match answer {
                Ok(answer) => answer,
                Err(failure) if failure.kind == Kind::NoLease => {
                    session.end();
                    continue;
                }
                Err(failure) => {
                    if failure.kind == Kind::Unknown {
                        session.lost_an_answer();
                    }
                    return Err(failure.error);
                }
            };
            let Some(lines) = contended.lines_in(&answer) else { return Err(odd_answer()) };
            let ours = contended.ours(&session, &lines);
            let numbers = || ours.iter().map(|entry| entry.place);
            let together = ours.len() == lines.len() && numbers().min() == numbers().max();
            if let Some(number) = numbers().max().filter(|_| together) {
                // They are there, whatever could not be sent after that.
                self.covers(&session, since).await.map_err(StoreError::sent)?;
                return Ok(Entered { session: session.lease.cast_unsigned(), number, lines });
            }
            if answer.succeeded {
                return Err(odd_answer());
            }
            // Somebody has removed a part of them.
            self.remove(ours.iter()).await.map_err(|failure| failure.error.sent())?;
            match requests::mark_in(&answer) {
                Some(mark) => session.marked(mark),
                None => session.end(),
            }
        }
        Err(StoreError::new(format!(
            "{}: its sessions end as soon as they are made",
            self.link.config.address
        )))
    }

    /// Sees to it that the session lives for as long as a lease may, from `since`.
    pub(super) async fn covers(&self, session: &Session, since: Instant) -> Result<(), StoreError> {
        let until = since + self.span().keeps_for();
        if session.lives_until() < until {
            self.prove(session, until).await.map_err(|failure| failure.error)?;
        }
        Ok(())
    }

    /// Whether each entry is there, in the order of claims that they are numbered by: all of one
    /// claim, or not.
    pub(super) async fn confirm(
        &self,
        session: &Session,
        claims: &[Vec<Entry>],
    ) -> Vec<Result<bool, StoreError>> {
        let since = Instant::now();
        let entries = numbered(claims);
        let asked = entries.chunks(MOST).map(async |chunk| {
            let answer = self.link.ask(TXN, &requests::confirm(&session.key, chunk)).await;
            answer.map(|answer: TxnResponse| requests::confirmed(chunk, &answer))
        });
        let mut outcome = by_claim(claims.len(), &entries, join_all(asked).await);
        if let Err(error) = self.covers(session, since).await {
            let ended = session.is_over();
            let sure = outcome.iter_mut().filter(|one| matches!(one, Ok(true)));
            sure.for_each(|one| *one = if ended { Ok(false) } else { Err(error.clone()) });
        }
        outcome
    }

    /// Removes the entries of each claim; whether all of them were there.
    pub(super) async fn leave(&self, claims: &[Vec<Entry>]) -> Vec<Result<bool, StoreError>> {
        let entries = numbered(claims);
        let asked = entries.chunks(MOST).map(async |chunk| {
            let answer = self.link.ask(TXN, &requests::leave(chunk)).await;
            answer.map(|answer: TxnResponse| requests::left(&answer).collect())
        });
        by_claim(claims.len(), &entries, join_all(asked).await)
    }

    async fn remove(&self, entries: impl Iterator<Item = &Entry>) -> Result<(), Failure> {
        let entries: Vec<_> = entries.map(|entry| (entry, 0)).collect();
        if !entries.is_empty() {
            let _removed: TxnResponse = self.link.ask(TXN, &requests::leave(&entries)).await?;
        }
        Ok(())
    }

    /// Returns once no question that was given up can come true any more.
    pub(super) async fn nothing_comes_later(&self) -> Result<(), StoreError> {
        match self.session() {
            Some(session) => self.stop_lost(&session).await.map_err(|failure| failure.error),
            // With it, what was asked in its name.
            None => Ok(()),
        }
    }

    async fn stop_lost(&self, session: &Session) -> Result<(), Failure> {
        if session.to_be_stopped().is_none() {
            return Ok(());
        }
        let _one = session.stopping.lock().await;
        let Some(lost) = session.to_be_stopped() else { return Ok(()) };
        for _ in 0..ROUNDS {
            let asked = requests::mark(&session.key, session.lease, session.mark());
            let answer: TxnResponse = self.link.ask(TXN, &asked).await?;
            if answer.succeeded {
                session.marked(answer.header.unwrap_or_default().revision);
                session.stopped(lost);
                return Ok(());
            }
            match requests::mark_in(&answer) {
                Some(mark) => session.marked(mark),
                None => {
                    session.end();
                    return Ok(());
                }
            }
        }
        Err(Failure::unknown(format!("{}: others write its keys", self.link.config.address)))
    }
}
