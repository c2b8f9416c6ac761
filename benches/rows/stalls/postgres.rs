//! The sessions on PostgreSQL, which are processes.

use std::time::Duration;

use lockattr_tests::PostgresServer;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_postgres::Client;

use super::{Kind, Sessions};

/// Sessions whose last statement is this recent run requests.
const ALL: &str = "select pid, clock_timestamp() - state_change < interval '300 ms'
    from pg_stat_activity where application_name = 'lockattr'";

/// Those of them that wait for a lock, also for one of the server's own, as on a page or the log.
const WAITING: &str = "select count(*) from pg_stat_activity
    where application_name = 'lockattr' and wait_event_type in ('Lock', 'LWLock')";

/// With fewer, they wait for a moment, and not for the session that was stopped.
const MANY: i64 = 6;

/// The sessions that are tried, and how long each stops before the row counts the waiting ones.
const TRIES: usize = 40;
const LOOK: Duration = Duration::from_millis(20);

pub(super) struct PostgresSessions<'a> {
    server: &'a PostgresServer,
    client: Client,
}

impl<'a> PostgresSessions<'a> {
    pub(super) async fn of(server: &'a PostgresServer) -> Self {
        Self { server, client: server.client().await }
    }

    /// Returns whether many sessions wait, or this one, too.
    async fn many_wait(&self) -> bool {
        match timeout(LOOK, self.client.query_one(WAITING, &[])).await {
            Ok(row) => row.expect("a count of sessions").get::<_, i64>(0) >= MANY,
            Err(_) => true,
        }
    }
}

impl Sessions for PostgresSessions<'_> {
    async fn of(&self, kind: Kind) -> Vec<i32> {
        let rows = self.client.query(ALL, &[]).await.expect("a list of sessions");
        let wanted = kind == Kind::Requests;
        rows.iter().filter(|row| row.get::<_, bool>(1) == wanted).map(|row| row.get(0)).collect()
    }

    /// Prefers a session that holds what many others wait for: they are the ones that a stall harms.
    async fn stop(&self, sessions: &[i32], time: Duration) {
        let mut tried = sessions.iter().cycle().take(TRIES).peekable();
        while let Some(&session) = tried.next() {
            let until = Instant::now() + time;
            self.server.stop_session(session);
            sleep(LOOK).await;
            if self.many_wait().await || tried.peek().is_none() {
                sleep_until(until).await;
            }
            self.server.continue_session(session);
            if Instant::now() >= until {
                return;
            }
        }
    }
}
