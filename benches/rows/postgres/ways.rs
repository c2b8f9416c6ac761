//! The ways to acquire and release a lock in PostgreSQL.

use std::sync::Arc;

use lockattr::{LockManager, LockOptions};
use lockattr_tests::{Engine, PostgresServer, bare};
use tokio_postgres::{Client, NoTls, Statement};

use crate::rates;

/// The first number of the keys that the statements by hand use.
const FIRST_KEY: i64 = 4711;

pub(super) enum Way {
    Ours(LockManager),
    /// Two statements: `pg_advisory_lock`, which waits on the server, and `pg_advisory_unlock`. The
    /// lock ends with its connection, has neither TTL nor number, and writes nothing.
    Advisory(Bare),
    /// Two statements: a row is inserted unless it exists, and deleted. The minimum for a lock that
    /// outlives its connection and its server. There is no queue: a failed insert has to be
    /// retried.
    Row(Bare),
}

/// One connection with two prepared statements. Tasks that share it do not wait for each other's
/// answers.
pub(super) struct Bare {
    client: Client,
    take: Statement,
    give: Statement,
}

impl Bare {
    async fn new(server: &PostgresServer, take: &str, give: &str) -> Self {
        let words = bare(&server.url()).replace("?", " ");
        let (client, connection) =
            tokio_postgres::connect(&words, NoTls).await.expect("it is there");
        tokio::spawn(connection);
        let take = client.prepare(take).await.expect("it makes sense");
        let give = client.prepare(give).await.expect("it makes sense");
        Self { client, take, give }
    }

    async fn hold(&self, key: i64) {
        self.client.query(&self.take, &[&key]).await.expect("it is there");
        self.client.query(&self.give, &[&key]).await.expect("it is there");
    }
}

impl Way {
    /// Each of these is a client that the server sees as a process of its own.
    pub(super) async fn ours(server: &PostgresServer, clients: usize) -> Vec<Arc<Self>> {
        Self::with(server, "wait=60s", clients).await
    }

    pub(super) async fn sessions(server: &PostgresServer, clients: usize) -> Vec<Arc<Self>> {
        Self::with(server, "wait=60s&lock=session", clients).await
    }

    async fn with(server: &PostgresServer, query: &str, clients: usize) -> Vec<Arc<Self>> {
        let mut all = Vec::new();
        for _ in 0..clients {
            let manager = LockManager::connect(bare(&server.url_with(query))).await;
            all.push(Arc::new(Self::Ours(manager.expect("it is there"))));
        }
        all
    }

    pub(super) async fn advisory(server: &PostgresServer, clients: usize) -> Vec<Arc<Self>> {
        let (take, give) = ("select pg_advisory_lock($1)", "select pg_advisory_unlock($1)");
        let mut all = Vec::new();
        for _ in 0..clients {
            all.push(Arc::new(Self::Advisory(Bare::new(server, take, give).await)));
        }
        all
    }

    pub(super) async fn rows(server: &PostgresServer, clients: usize) -> Vec<Arc<Self>> {
        let table = "create table if not exists bare (key bigint primary key, ends timestamptz)";
        server.run(table).await;
        let take = "insert into bare values ($1, clock_timestamp() + interval '10 s')
            on conflict (key) do update set ends = excluded.ends
            where bare.ends < clock_timestamp() returning key";
        let give = "delete from bare where key = $1";
        let mut all = Vec::new();
        for _ in 0..clients {
            all.push(Arc::new(Self::Row(Bare::new(server, take, give).await)));
        }
        all
    }
}

impl rates::Way for Way {
    async fn hold(&self, key: u64) {
        match self {
            Self::Ours(manager) => {
                let key = format!("bench:{key}");
                let guard = manager.acquire(&key, LockOptions::new()).await.expect("it is there");
                guard.release().await.expect("ours");
            }
            Self::Advisory(bare) | Self::Row(bare) => bare.hold(FIRST_KEY + key as i64).await,
        }
    }
}
