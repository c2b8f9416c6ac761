//! Acquires locks, and waits for them on the server.

use std::sync::{Arc, Weak};

use mysql_async::Error;
use tokio::time::{Instant, timeout};

use super::Sessions;
use super::claims::Served;
use super::completing::Completing;
use super::session::{Held, Use};
use super::statements::{is_ours, let_idle, name_on_server, try_lock, wait_for_lock};
use crate::FencingToken;
use crate::engines::mysql::config::{Config, idle_seconds};
use crate::engines::mysql::connect::error_from;
use crate::store::{AcquireOutcome, AcquireRequest, Grant, MAX_RECHECK, StoreError, Waiting};

impl Sessions {
    pub(in crate::engines::mysql) async fn acquire(
        self: &Arc<Self>,
        request: &AcquireRequest,
    ) -> Result<AcquireOutcome, StoreError> {
        let token = request.claim.token();
        let (served, using) = match self.claims.get(token) {
            Some(served) if served.waits() => return Ok(queued()),
            Some(served) => {
                let using = served.session.to_use().await;
                (served, using)
            }
            None => {
                let mut using = self.session().await?.to_use().await;
                // From here on there is something to undo.
                request.claim.departs();
                using.connection.token = Some(token);
                (self.claims.begin(token, &using.session), using)
            }
        };
        let runtime = using.session.runtime.clone();
        let work = self.clone().try_on(using, request.clone());
        match Completing::new(runtime, work).await? {
            (_, Some(fencing)) => {
                // The server does not report whether others wait, so assume that they do.
                Ok(AcquireOutcome::Acquired { fencing, contended: true })
            }
            (using, None) if request.waiting == Waiting::Not => {
                self.finish(using);
                Ok(AcquireOutcome::Held { holder: None, queued: None })
            }
            (using, None) => {
                served.set_waits(true);
                let runtime = using.session.runtime.clone();
                runtime.spawn(wait(Arc::downgrade(self), served, using, request.clone()));
                Ok(queued())
            }
        }
    }

    /// Tries to take the lock. `None` if another session has it.
    async fn try_on(
        self: Arc<Self>,
        mut using: Use,
        request: AcquireRequest,
    ) -> Result<(Use, Option<FencingToken>), StoreError> {
        let limit = self.config.timing.response_timeout;
        let name = name_on_server(&using.session.database, request.claim.key().name());
        let connection = &mut *using.connection;
        let ours = connection.token == Some(request.claim.token());
        let Some(conn) = connection.conn.as_mut().filter(|_| ours) else {
            if ours {
                self.end(using);
            }
            return Err(ended());
        };
        connection.is_busy = true;
        let locked = async {
            if let Some(held) = &connection.held {
                // The claim asks again.
                return Ok(is_ours(conn, &held.name).await?.then_some(held.fencing));
            }
            // Before it has the lock, so that it never has it for longer.
            let idle = idle_seconds(request.ttl);
            if connection.idle != idle {
                let_idle(conn, idle).await?;
                connection.idle = idle;
                using.session.wake_keeper.notify_one();
            }
            let drawn = try_lock(conn, &name).await?;
            connection.numbers.number(conn, drawn).await
        };
        let fencing = match timeout(limit, locked).await {
            Ok(Ok(fencing)) => fencing,
            failed => {
                self.end(using);
                return Err(self.failure(failed));
            }
        };
        self.answered(&mut using);
        using.connection.held = fencing.map(|fencing| Held::new(name, request.ttl, fencing));
        Ok((using, fencing))
    }

    /// Why a statement failed.
    pub(super) fn failure<T>(
        &self,
        failed: Result<Result<T, Error>, tokio::time::error::Elapsed>,
    ) -> StoreError {
        match failed {
            Ok(Err(error)) => error_from(&self.config.address, error),
            _ => self.no_reply(),
        }
    }
}

fn queued() -> AcquireOutcome {
    AcquireOutcome::Held { holder: None, queued: Some(MAX_RECHECK) }
}

fn ended() -> StoreError {
    StoreError::new("the connection that was to hold the lock has ended").not_sent()
}

/// Waits on the server until it grants the lock or the claim gives up.
async fn wait(
    sessions: Weak<Sessions>,
    served: Arc<Served>,
    mut using: Use,
    request: AcquireRequest,
) {
    let Some(config) = sessions.upgrade().map(|sessions| sessions.config.clone()) else { return };
    let (claim, ttl) = (&request.claim, request.ttl);
    let name = name_on_server(&using.session.database, claim.key().name());
    let connection = &mut *using.connection;
    let Some(conn) = &mut connection.conn else { return };
    connection.is_busy = true;
    let id = conn.id();
    let granted = async {
        let drawn = wait_for_lock(conn, &name).await?;
        connection.numbers.number(conn, drawn).await
    };
    let granted = tokio::select! {
        biased;
        granted = granted => Some(granted),
        () = served.gives_up.notified() => None,
    };
    if granted.is_none() {
        // End the session on the server. Otherwise the server notices late that the waiter is gone,
        // and may grant it the lock meanwhile.
        end_on_server(&sessions, &config, id).await;
    }
    let Some(sessions) = sessions.upgrade() else { return };
    served.set_waits(false);
    let subscriber = sessions.subscribers.get(claim.token().subscriber());
    match granted {
        Some(Ok(Some(fencing))) => {
            sessions.answered(&mut using);
            using.connection.held = Some(Held::new(name, ttl, fencing));
            drop(using);
            if let Some(subscriber) = subscriber {
                let grant = Grant::new(fencing, Instant::now(), true);
                subscriber.granted(claim.token(), grant);
            }
        }
        Some(_) => {
            sessions.end(using);
            if let Some(subscriber) = subscriber {
                subscriber.ask_again(claim.token(), Instant::now());
            }
        }
        None => sessions.end(using),
    }
}

/// Ends a session on the server, over another connection; one session after the other.
async fn end_on_server(sessions: &Weak<Sessions>, config: &Config, id: u32) {
    let sessions = sessions.upgrade();
    let _turn = match &sessions {
        Some(sessions) => Some(sessions.ending.lock().await),
        None => None,
    };
    super::operator::end(config, id).await;
}
