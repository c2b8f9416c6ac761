//! MariaDB where locks belong to connections.

use super::{AnyStore, Fleet, OnMysql};

pub(in crate::store_contract) struct OnMysqlSessions(OnMysql);

impl Fleet for OnMysqlSessions {
    async fn start() -> Self {
        Self(OnMysql::start().await)
    }

    fn node(&self) -> AnyStore {
        self.0.node_with("lock=session")
    }

    /// A session lock leaves no row. This checks that no table of the other lock form was used.
    async fn finish(&self) {
        let left = self.0.server.left_in(&self.0.database).await;
        assert!(left.is_empty(), "{left:?}");
    }
}
