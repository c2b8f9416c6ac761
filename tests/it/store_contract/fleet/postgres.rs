//! One PostgreSQL server for all tests, with a schema for each.

use lockattr::store::PostgresStore;
use lockattr_tests::{PostgresServer, eventually, for_store, with_query};

use super::{AnyStore, Fleet};

pub(in crate::store_contract) struct OnPostgres {
    url: String,
    schema: String,
}

impl Fleet for OnPostgres {
    async fn start() -> Self {
        let (url, schema) = PostgresServer::shared().await.new_schema().await;
        // Many tests share a machine with their server, so slow replies are expected.
        let url = with_query(&url, "heartbeat=1h");
        Self { url, schema }
    }

    fn node(&self) -> AnyStore {
        AnyStore::new(PostgresStore::open(&for_store(&self.url)).expect("a good URL"))
    }

    async fn wait_until_gone(&self, subscriber: u64) {
        let client = PostgresServer::shared().await.client().await;
        let subscribers = format!(
            "select 1 from {}.lockattr_queue join pg_locks on locktype = 'advisory'
                 and listener = (classid::bigint << 32) | objid::bigint
             where left(encode(token, 'hex'), 16) = $1",
            self.schema
        );
        let subscriber = format!("{subscriber:016x}");
        let gone = async || client.query(&subscribers, &[&subscriber]).await.unwrap().is_empty();
        eventually("its connection is closed", gone).await;
    }
}
