//! PostgreSQL, compared with a session's advisory lock and with a bare row, on `tokio-postgres`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockattr::{LockManager, LockOptions};
use lockattr_tests::{Engine, PostgresServer};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_postgres::{Client, NoTls, Statement};

use crate::report::{Bar, Report};
use crate::spread::Spread;

/// Short and in turn, because noise comes and goes.
const ROUND: Duration = Duration::from_millis(100);

/// A way to acquire and release a lock, over its own connection.
enum Way {
    Ours(LockManager),
    /// Two statements: `pg_advisory_lock`, which waits on the server, and `pg_advisory_unlock`. The
    /// lock ends with its connection, has neither TTL nor number, and writes nothing.
    Advisory(Bare),
    /// Two statements: a row is inserted unless it exists, and deleted. The minimum for a lock that
    /// outlives its connection and its server. There is no queue: a failed insert has to be
    /// retried.
    Row(Bare),
}

struct Bare {
    client: Client,
    take: Statement,
    give: Statement,
}

impl Bare {
    async fn new(server: &PostgresServer, take: &str, give: &str) -> Self {
        let words = server.url().replace("?", " ");
        let (client, connection) =
            tokio_postgres::connect(&words, NoTls).await.expect("it is there");
        tokio::spawn(connection);
        let take = client.prepare(take).await.expect("it makes sense");
        let give = client.prepare(give).await.expect("it makes sense");
        Self { client, take, give }
    }

    async fn hold(&self) {
        self.client.query(&self.take, &[&4711_i64]).await.expect("it is there");
        self.client.query(&self.give, &[&4711_i64]).await.expect("it is there");
    }
}

impl Way {
    async fn ours(server: &PostgresServer) -> Arc<Self> {
        let url = format!("{}?wait=60s", server.url());
        Arc::new(Self::Ours(LockManager::connect(url).await.expect("it is there")))
    }

    async fn sessions(server: &PostgresServer) -> Arc<Self> {
        let url = format!("{}?wait=60s&lock=session", server.url());
        Arc::new(Self::Ours(LockManager::connect(url).await.expect("it is there")))
    }

    async fn advisory(server: &PostgresServer) -> Arc<Self> {
        let (take, give) = ("select pg_advisory_lock($1)", "select pg_advisory_unlock($1)");
        Arc::new(Self::Advisory(Bare::new(server, take, give).await))
    }

    async fn row(server: &PostgresServer) -> Arc<Self> {
        server.run("create table bare (key bigint primary key, ends timestamptz)").await;
        let take = "insert into bare values ($1, clock_timestamp() + interval '10 s')
            on conflict (key) do update set ends = excluded.ends
            where bare.ends < clock_timestamp() returning key";
        Arc::new(Self::Row(Bare::new(server, take, "delete from bare where key = $1").await))
    }

    async fn hold(&self) {
        match self {
            Self::Ours(manager) => {
                let guard =
                    manager.acquire("bench", LockOptions::new()).await.expect("it is there");
                guard.release().await.expect("ours");
            }
            Self::Advisory(bare) | Self::Row(bare) => bare.hold().await,
        }
    }
}

/// The rate of all together, each in its own task.
async fn round(ways: &[Arc<Way>]) -> f64 {
    let (mut tasks, count) = (JoinSet::new(), Arc::<AtomicU64>::default());
    let began = Instant::now();
    for way in ways {
        let (way, count) = (way.clone(), count.clone());
        tasks.spawn(async move {
            while began.elapsed() < ROUND {
                way.hold().await;
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    tasks.join_all().await;
    count.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64()
}

/// All in turn, ABBA…, for `time` each. Returns the rates of their rounds.
async fn in_turn<const N: usize>(ways: [&[Arc<Way>]; N], time: Duration) -> [Vec<f64>; N] {
    let mut all = ways.map(|_| Vec::new());
    for way in ways {
        round(way).await;
    }
    let rounds = (time.as_nanos() / ROUND.as_nanos()).max(3);
    for nth in 0..rounds {
        for turn in 0..N {
            let which = if nth % 2 == 0 { turn } else { N - 1 - turn };
            all[which].push(round(ways[which]).await);
        }
    }
    all
}

/// Round by round, because both saw the same noise.
fn over(ours: &[f64], theirs: &[f64]) -> Spread {
    Spread::of(ours.iter().zip(theirs).map(|(one, other)| one / other)).expect("there was a round")
}

fn note(report: &mut Report, name: &str, rates: &[f64]) {
    let median = Spread::of(rates.iter().copied()).expect("there was a round").median;
    report.note(&format!("{name:<44} {median:>8.0} a second"));
}

pub(super) async fn measure(report: &mut Report, time: Duration) {
    report.row("postgres", "PostgreSQL: uncontended, and handed from client to client");
    let server = PostgresServer::start().await;
    report
        .note("nothing waits for a disk: with one, each commit of ours and of the row is a flush");

    let (ours, advisory, row) =
        (Way::ours(&server).await, Way::advisory(&server).await, Way::row(&server).await);
    let [of_ours, of_advisory, of_row] = in_turn([&[ours], &[advisory], &[row]], time).await;
    note(report, "lockattr", &of_ours);
    note(report, "pg_advisory_lock, pg_advisory_unlock", &of_advisory);
    note(report, "insert … on conflict, delete", &of_row);
    let against_row = over(&of_ours, &of_row);
    report.bar("uncontended over a bare row", against_row, "x", Bar::AtLeast(1.0));
    let against_advisory = over(&of_ours, &of_advisory);
    report.bar("uncontended over advisory locks", against_advisory, "x", Bar::AtLeast(1.0));

    let (sessions, advisory) = (Way::sessions(&server).await, Way::advisory(&server).await);
    let [of_sessions, of_advisory] = in_turn([&[sessions], &[advisory]], time).await;
    note(report, "lockattr, lock=session", &of_sessions);
    note(report, "pg_advisory_lock, pg_advisory_unlock", &of_advisory);
    let against = over(&of_sessions, &of_advisory);
    report.bar("lock=session, uncontended, over advisory locks", against, "x", Bar::AtLeast(1.0));

    for clients in [2, 8] {
        let (mut ours, mut advisory) = (Vec::new(), Vec::new());
        for _ in 0..clients {
            ours.push(Way::sessions(&server).await);
            advisory.push(Way::advisory(&server).await);
        }
        let [of_ours, of_advisory] = in_turn([&ours, &advisory], time).await;
        report.note(&format!("{clients} clients, one key, lock=session"));
        note(report, "lockattr, lock=session", &of_ours);
        note(report, "pg_advisory_lock, pg_advisory_unlock", &of_advisory);
        let what = format!("{clients} clients, lock=session: hand-offs over advisory locks");
        report.bar(&what, over(&of_ours, &of_advisory), "x", Bar::AtLeast(1.0));
    }

    for clients in [2, 8] {
        let (mut ours, mut advisory) = (Vec::new(), Vec::new());
        for _ in 0..clients {
            ours.push(Way::ours(&server).await);
            advisory.push(Way::advisory(&server).await);
        }
        let [of_ours, of_advisory] = in_turn([&ours, &advisory], time).await;
        report.note(&format!("{clients} clients, one key"));
        note(report, "lockattr", &of_ours);
        note(report, "pg_advisory_lock, pg_advisory_unlock", &of_advisory);
        let what = format!("{clients} clients: hand-offs over advisory locks");
        report.bar(&what, over(&of_ours, &of_advisory), "x", Bar::AtLeast(1.0));
    }
}
