//! A database whose locks end with their connections, and not with a lease.

use std::time::Duration;

use lockattr_tests::{Engine, MariaDb, PostgresServer, with_query};
use tokio::sync::OnceCell;

use crate::queue_promises::Topology;

/// The servers of an engine, with `lock=session` in each URL.
pub(crate) struct Sessions<E: 'static>(&'static E);

impl<E: Topology> Engine for Sessions<E> {
    const GIVES_UP_WITHIN: Duration = E::GIVES_UP_WITHIN;
    const OUTLIVES_ITS_CONNECTION: bool = false;

    async fn start() -> Self {
        Self(E::shared().await)
    }

    fn addrs(&self) -> Vec<String> {
        self.0.addrs()
    }

    fn url_at(&self, addrs: &[String]) -> String {
        with_query(&self.0.url_at(addrs), "lock=session")
    }

    async fn restart(&self) {
        self.0.restart().await;
    }

    fn freeze(&self) {
        self.0.freeze();
    }

    fn thaw(&self) {
        self.0.thaw();
    }

    async fn left(&self) -> Vec<String> {
        self.0.left().await
    }
}

impl Topology for Sessions<PostgresServer> {
    async fn shared() -> &'static Self {
        static SHARED: OnceCell<Sessions<PostgresServer>> = OnceCell::const_new();
        SHARED.get_or_init(<Self as Engine>::start).await
    }

    async fn steal(&self, _: &str, _: &[String]) {
        unreachable!("no test takes a leader's lock away");
    }
}

impl Topology for Sessions<MariaDb> {
    async fn shared() -> &'static Self {
        static SHARED: OnceCell<Sessions<MariaDb>> = OnceCell::const_new();
        SHARED.get_or_init(<Self as Engine>::start).await
    }

    async fn steal(&self, _: &str, _: &[String]) {
        unreachable!("no test takes a leader's lock away");
    }
}
