//! Keeps the session alive: opens it when first needed, proves it regularly, and revokes it at the
//! end.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
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
        let session = self.current.lock().clone();
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
        let session_timeout = self.connection.config.session_timeout;
        let since = Instant::now();
        let ttl = i64::try_from(session_timeout.as_secs()).unwrap_or(i64::MAX);
        let granted: LeaseGrantResponse =
            self.connection.send(GRANT, &LeaseGrantRequest { ttl }).await?;
        if granted.ttl > ttl {
            tracing::warn!(
                lockattr.asked = ttl,
                lockattr.granted = granted.ttl,
                "etcd raised the `session_timeout` to its own minimum: after a crash, a lock stays held for \
                 that many seconds"
            );
        }
        let key = names::session(granted.id);
        let written: TxnResponse =
            self.connection.send(TXN, &requests::write_session_key(&key, granted.id, 0)).await?;
        let revision = written.header.unwrap_or_default().revision;
        let session = Session::new(granted.id, revision, since + self.lease_timing().lifetime());
        let session = Arc::new(session);
        let opened = session.clone();
        *self.current.lock() = Some(opened);
        tokio::spawn(keep_alive(Arc::downgrade(self), session.clone()));
        if !self.history_checked.swap(true, Ordering::Relaxed) {
            let (core, key) = (self.clone(), session.key.clone());
            tokio::spawn(async move { core.check_history(&key, revision).await });
        }
        Ok(session)
    }

    /// Revokes the lease, and with it all its keys.
    pub(super) async fn revoke(&self, session: &Session) {
        session.end();
        let request = LeaseId { id: session.lease };
        // If this fails, the lease expires by itself.
        let _done: Result<Done, _> = self.connection.send(REVOKE, &request).await;
    }

    /// Ensures that the session lives until `until`: reads the session's key, then keeps the lease
    /// alive, in no earlier term. [`LeaseTiming`](super::session::LeaseTiming) has the reason.
    pub(super) async fn prove(&self, session: &Session, until: Instant) -> Result<(), Failure> {
        let mut unanswered = session.proving.lock().await;
        if session.alive_until() >= until {
            return Ok(());
        }
        loop {
            let since = Instant::now();
            let live = self.connection.get().await?;
            let found: RangeResponse =
                self.connection.send_on(&live, RANGE, &requests::single_key(&session.key)).await?;
            if found.kvs.is_empty() {
                return Err(ended(session));
            }
            // A `grpc-proxy` gives this request the reply to an earlier one, if that came too late.
            let asked = *unanswered.get_or_insert(since);
            let response = live.first_of(KEEP_ALIVE, LeaseId { id: session.lease });
            let kept: LeaseKeepAliveResponse =
                self.connection.unless_silent(&live, response).await?;
            *unanswered = None;
            if kept.ttl <= 0 {
                return Err(ended(session));
            }
            if !self.lease_timing().is_renewed(&found, &kept) {
                let address = &live.address;
                return Err(Failure::unknown(format!("{address} did not keep the session alive")));
            }
            session.proved(asked + self.lease_timing().lifetime());
            if asked == since {
                return Ok(());
            }
        }
    }

    async fn watch(&self, session: &Session) -> Option<Watch> {
        let live = self.connection.get().await.ok()?;
        let mut watch = live.watches.removal(&session.key);
        self.is_created(&live, &mut watch).await.then_some(watch)
    }
}

fn ended(session: &Session) -> Failure {
    session.end();
    Failure::unknown("the store session has ended".into())
}

/// Keeps a session alive until it is over: watches its key, and proves it regularly.
async fn keep_alive(core: Weak<Core>, session: Arc<Session>) {
    let mut watch = None;
    while !session.is_over() {
        let Some(strong) = core.upgrade() else { return };
        let every =
            strong.lease_timing().prove_every().min(strong.connection.config.timing.heartbeat);
        let lifetime = strong.lease_timing().lifetime();
        let proving = async {
            if watch.is_none() {
                watch = strong.watch(&session).await;
            }
            // Beyond the last proof, so that this makes a new one.
            strong.prove(&session, Instant::now() + lifetime).await
        };
        let until = session.alive_until();
        let proved = timeout_at(until, proving).await.is_ok_and(|proved| proved.is_ok());
        drop(strong);
        let pause = if proved { every } else { RETRY_PAUSE };
        let watched = async {
            match &mut watch {
                Some(watch) => watch.outcome().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            watched = watched => match watched {
                WatchOutcome::Event => break,
                WatchOutcome::Unknown => watch = None,
            },
            () = session.ended() => {}
            () = sleep(pause) => {}
            () = sleep_until(session.alive_until()) => {}
        }
    }
    session.end();
    // Whatever is left of it must not wait until it expires.
    if let Some(core) = core.upgrade() {
        core.revoke(&session).await;
    }
}
