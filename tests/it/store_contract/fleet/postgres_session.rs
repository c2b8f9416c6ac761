//! PostgreSQL's advisory locks: one server and one database for all tests, used by a role that may
//! only connect. Each test has keys of its own.

use lockattr::store::PostgresSessionStore;
use lockattr_tests::{PostgresServer, eventually, for_store, patient};
use tokio::sync::OnceCell;

use super::{AnyStore, Fleet, next_prefix};

pub(in crate::store_contract) struct OnPostgresSessions {
    url: String,
    prefix: String,
}

/// Returns the name of the shared database.
async fn database() -> &'static str {
    static DATABASE: OnceCell<String> = OnceCell::const_new();
    let make = async || {
        let server = PostgresServer::shared().await;
        let (_, name) = server.new_database().await;
        let rights = format!(
            "create role connects login; revoke all on database {name} from public; \
             grant connect on database {name} to connects"
        );
        server.run(&rights).await;
        let public = "revoke all on schema public from public";
        server.client_of(&name).await.batch_execute(public).await.expect("ours to give");
        name
    };
    DATABASE.get_or_init(make).await
}

impl Fleet for OnPostgresSessions {
    async fn start() -> Self {
        let prefix = next_prefix();
        let (server, database) = (PostgresServer::shared().await, database().await);
        // Many tests share a machine with their server, so slow replies are expected.
        let url =
            patient(&format!("postgres://connects@{}/{database}?heartbeat=1h", server.addr()));
        Self { url, prefix }
    }

    fn prefix(&self) -> String {
        self.prefix.clone()
    }

    fn node(&self) -> AnyStore {
        AnyStore::new(PostgresSessionStore::open(&for_store(&self.url)).expect("a good URL"))
    }

    /// Waits until the sessions that are gone have left the queue.
    async fn wait_until_gone(&self, _inbox: u64) {
        let client = PostgresServer::shared().await.client().await;
        let waiting = "select 1 from pg_locks join pg_database as db on db.oid = database
                       where locktype = 'advisory' and not granted and datname = $1";
        let name = database().await;
        // One claim of the test still waits.
        let gone = async || client.query(waiting, &[&name]).await.unwrap().len() <= 1;
        eventually("no longer queued", gone).await;
    }
}
