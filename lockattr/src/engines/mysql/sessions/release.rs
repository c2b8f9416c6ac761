//! Renews and releases locks.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::Sessions;
use super::completing::Completing;
use super::session::{Session, Use};
use super::statements::{is_ours, let_idle, release};
use crate::engines::mysql::config::idle_seconds;
use crate::store::{
    OwnerToken, ReleaseOutcome, ReleaseRequest, RenewOutcome, RenewRequest, StoreError,
};

impl Sessions {
    pub(in crate::engines::mysql) async fn renew(
        self: &Arc<Self>,
        renewal: &RenewRequest,
    ) -> Result<RenewOutcome, StoreError> {
        let token = renewal.claim.token();
        // Without its connection, the lock is lost.
        let Some(served) = self.claims.get(token).filter(|served| !served.waits()) else {
            return Ok(RenewOutcome::NotHeld);
        };
        let session = served.session.clone();
        let runtime = session.runtime.clone();
        let work = Completing::new(runtime, self.clone().renew_on(session, token, renewal.ttl));
        match timeout(self.config.timing.response_timeout, work).await {
            Ok(outcome) => Ok(outcome),
            Err(_) => Err(self.no_reply()),
        }
    }

    async fn renew_on(
        self: Arc<Self>,
        session: Arc<Session>,
        token: OwnerToken,
        ttl: Duration,
    ) -> RenewOutcome {
        let mut using = session.to_use().await;
        let connection = &mut *using.connection;
        let (true, Some(conn), Some(held)) =
            (connection.token == Some(token), &mut connection.conn, &mut connection.held)
        else {
            return RenewOutcome::NotHeld;
        };
        held.ttl = ttl;
        // Before the reply, which may be late: the lease must not end meanwhile.
        held.ends = held.ends.max(Instant::now() + ttl);
        connection.is_busy = true;
        let (idle, longer) = (idle_seconds(ttl), idle_seconds(ttl) > connection.idle);
        let checked = async {
            if longer {
                let_idle(conn, idle).await?;
            }
            is_ours(conn, &held.name).await
        };
        // Longer than the caller waits: giving up the connection would give up the lock. After the
        // TTL, the holder no longer relies on it.
        match timeout(ttl, checked).await {
            Ok(Ok(true)) => {
                connection.idle = connection.idle.max(idle);
                self.answered(&mut using);
                RenewOutcome::Renewed
            }
            _ => {
                self.end(using);
                RenewOutcome::NotHeld
            }
        }
    }

    pub(in crate::engines::mysql) async fn release(
        self: &Arc<Self>,
        release: &ReleaseRequest,
    ) -> Result<ReleaseOutcome, StoreError> {
        let token = release.claim.token();
        let Some(served) = self.claims.get(token) else { return Ok(ReleaseOutcome::NotHeld) };
        served.gives_up.notify_one();
        let session = served.session.clone();
        let runtime = session.runtime.clone();
        let work = Completing::new(runtime, self.clone().release_on(session, token, release.after));
        match timeout(self.config.timing.response_timeout, work).await {
            Ok(outcome) => outcome,
            Err(_) => Err(self.no_reply()),
        }
    }

    async fn release_on(
        self: Arc<Self>,
        session: Arc<Session>,
        token: OwnerToken,
        after: Duration,
    ) -> Result<ReleaseOutcome, StoreError> {
        let mut using = session.to_use().await;
        if using.connection.token != Some(token) {
            return Ok(ReleaseOutcome::NotHeld);
        }
        if let Some(held) = using.connection.held.as_mut().filter(|_| !after.is_zero()) {
            held.ends = Instant::now() + after;
            self.claims.remove(token, &session);
            let runtime = session.runtime.clone();
            runtime.spawn(async move {
                drop(using);
                sleep(after).await;
                let using = session.to_use().await;
                if using.connection.token == Some(token) {
                    self.release_now(using).await.ok();
                }
            });
            return Ok(ReleaseOutcome::Released);
        }
        self.release_now(using).await
    }

    pub(super) async fn release_now(&self, mut using: Use) -> Result<ReleaseOutcome, StoreError> {
        let connection = &mut *using.connection;
        let (Some(conn), Some(held)) = (&mut connection.conn, connection.held.take()) else {
            self.finish(using);
            return Ok(ReleaseOutcome::NotHeld);
        };
        connection.is_busy = true;
        let limit = self.config.timing.response_timeout;
        match timeout(limit, release(conn, &held.name)).await {
            Ok(Ok(released)) => {
                self.answered(&mut using);
                self.finish(using);
                Ok(match released {
                    true => ReleaseOutcome::Released,
                    false => ReleaseOutcome::NotHeld,
                })
            }
            // Without an answer, the lock ends with the connection.
            Ok(Err(_)) => {
                self.end(using);
                Ok(ReleaseOutcome::NotHeld)
            }
            Err(_) => {
                self.end(using);
                Err(self.no_reply())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;
    use crate::engines::mysql::config::Config;
    use crate::lock::server_options::ServerOptions;
    use crate::store::{Claim, LockKey, Sharing, Subscriber};

    /// The connection serves another claim by the time these are read.
    ///
    /// Red without: the token in `renew_on`, or in `release_on`.
    #[tokio::test]
    async fn what_an_earlier_claim_says_late_does_not_concern_the_next() {
        let url = vec![Url::parse("mysql://u@127.0.0.1:1/db").unwrap()];
        let query = [("lock".to_owned(), "session".to_owned())];
        let config = Config::read(url, &query, ServerOptions::default()).unwrap();
        let sessions = Sessions::new(Arc::new(config));
        let subscriber = Arc::new(Subscriber::new(|_name| {}));
        let [served, earlier] = ["a", "b"].map(|key| {
            let key = LockKey::new("lock:", key).unwrap();
            Claim::of(&subscriber, key, [], Sharing::Exclusive, "service=test").token()
        });
        let session = Session::without_connection(served);
        let renewed = sessions.clone().renew_on(session.clone(), earlier, Duration::from_secs(9));
        assert_eq!(renewed.await, RenewOutcome::NotHeld);
        let released = sessions.release_on(session.clone(), earlier, Duration::ZERO).await;
        assert_eq!(released.unwrap(), ReleaseOutcome::NotHeld);
        let using = session.to_use().await;
        assert!(using.connection.held.is_some() && using.connection.token == Some(served));
        assert!(!session.is_over());
    }
}
