//! Whether the cluster ever removes its history.

use super::call::RANGE;
use super::core::Core;
use super::messages::{RangeRequest, RangeResponse};
use super::requests;

/// How many revisions a cluster may have without ever having been compacted. Every acquisition and
/// every release is one.
const MANY: i64 = 100_000;

impl Core {
    /// Warns if the cluster has kept everything since its beginning. Whether it is compacted often
    /// enough cannot be known, but a cluster that still has its first revision never was.
    pub(super) async fn check_history(&self, session_key: &str, revision: i64) {
        if revision < MANY {
            return;
        }
        let first = RangeRequest { revision: 1, ..requests::single_key(session_key) };
        let found: Result<RangeResponse, _> = self.connection.send(RANGE, &first).await;
        if found.is_ok() {
            tracing::warn!(
                lockattr.revision = revision,
                "etcd has never been compacted and keeps every acquisition and release on its disk: set \
                 `--auto-compaction-retention`"
            );
        }
    }
}
