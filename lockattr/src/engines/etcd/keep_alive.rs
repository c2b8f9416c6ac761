//! Keeps the session alive: opens it when first needed, proves it regularly, and revokes it at the
//! end.

use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::call::{GRANT, KEEP_ALIVE, RANGE, REVOKE, TXN};
use super::core::Core;
use super::failure::Failure;
use super::messages::{
    Done, LeaseGrantRequest, LeaseGrantResponse, LeaseId, LeaseKeepAliveResponse, RangeResponse,
    TxnResponse,
};
use super::session::Session;
use super::watches::{Watch, WatchOutcome};
use super::{names, requests};

/// How long to wait before the session is proved again, if that failed.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

impl Core {
    /// Returns the current session, if it is not over.
    pub(super) fn session(&self) -> Option<Arc<Session>> {
        let session = self.current.lock().unwrap_or_else(PoisonError::into_inner).clone();
        session.filter(|session| !session.is_over())
    }

    /// Returns the current session, or opens a new one.
    pub(super) async fn open(self: &Arc<Self>) -> Result<Arc<Session>, Failure> {
        if let Some(session) = self.session() {
            return Ok(session);
        }
        let _one = self.opening.lock().await;
        if let Some(session) = self.session() {
            return Ok(session);
        }
        let asked = self.connection.config.session_timeout;
        let since = Instant::now();
        let ttl = i64::try_from(asked.as_secs()).unwrap_or(i64::MAX);
        let granted: LeaseGrantResponse =
            self.connection.ask(GRANT, &LeaseGrantRequest { ttl }).await?;
        if granted.ttl > ttl {
            tracing::warn!(
                asked = ttl,
                granted = granted.ttl,
                "etcd made the `session_timeout` longer, to its own least: so many seconds a lock \
                 outlives its process"
            );
        }
        let key = names::session(granted.id);
        let marked: TxnResponse =
            self.connection.ask(TXN, &requests::write_session_key(&key, granted.id, 0)).await?;
        let mark = marked.header.unwrap_or_default().revision;
        let session = Session::new(granted.id, mark, since + self.lease_timing().lifetime());
        let session = Arc::new(session);
        let opened = session.clone();
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened);
        tokio::spawn(keep(Arc::downgrade(self), session.clone()));
        Ok(session)
    }

    /// Revokes the lease, and with it all its keys.
    pub(super) async fn revoke(&self, session: &Session) {
        session.end();
        let asked = LeaseId { id: session.lease };
        // If this fails, the lease expires by itself.
        let _done: Result<Done, _> = self.connection.ask(REVOKE, &asked).await;
    }

    /// Ensures that the session lives until `until`: reads the session's key, then keeps the lease
    /// alive, over the same connection. [`LeaseTiming`](super::session::LeaseTiming) has the reason.
    pub(super) async fn prove(&self, session: &Session, until: Instant) -> Result<(), Failure> {
        let _one = session.proving.lock().await;
        if session.lives_until() >= until {
            return Ok(());
        }
        let since = Instant::now();
        let live = self.connection.get().await?;
        let found: RangeResponse =
            self.connection.ask_on(&live, RANGE, &requests::single_key(&session.key)).await?;
        let kept: LeaseKeepAliveResponse = if found.kvs.is_empty() {
            LeaseKeepAliveResponse::default()
        } else {
            let asked = live.first_of(KEEP_ALIVE, LeaseId { id: session.lease });
            self.connection.in_time(&live, asked).await?
        };
        if kept.ttl <= 0 {
            session.end();
            return Err(Failure::unknown("its session has ended".into()));
        }
        session.proved(since + self.lease_timing().lifetime());
        Ok(())
    }

    async fn watch(&self, session: &Session) -> Option<Watch> {
        let live = self.connection.get().await.ok()?;
        let mut watch = live.watches.removal(&session.key);
        self.is_there(&live, &mut watch).await.then_some(watch)
    }
}

/// Keeps a session alive until it is over: watches its key, and proves it regularly.
async fn keep(core: Weak<Core>, session: Arc<Session>) {
    let mut watch = None;
    while !session.is_over() {
        let Some(here) = core.upgrade() else { return };
        let every = here.lease_timing().prove_every().min(here.connection.config.timing.heartbeat);
        let lives = here.lease_timing().lifetime();
        let proving = async {
            if watch.is_none() {
                watch = here.watch(&session).await;
            }
            // Beyond the last proof, so that this makes a new one.
            here.prove(&session, Instant::now() + lives).await
        };
        let until = session.lives_until();
        let proved = timeout_at(until, proving).await.is_ok_and(|proved| proved.is_ok());
        drop(here);
        let beat = if proved { every } else { RETRY_PAUSE };
        let seen = async {
            match &mut watch {
                Some(watch) => watch.outcome().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            seen = seen => match seen {
                WatchOutcome::Event => break,
                WatchOutcome::Unknown => watch = None,
            },
            () = session.ended() => {}
            () = sleep(beat) => {}
            () = sleep_until(session.lives_until()) => {}
        }
    }
    session.end();
    // Whatever is left of it must not wait until it expires.
    if let Some(core) = core.upgrade() {
        core.revoke(&session).await;
    }
}
