//! What several Redis have in common, however they belong together.

use lockattr_tests::RedisServer;

use crate::nemesis::Harm;

pub(super) async fn forget(server: &RedisServer, kind: Harm) {
    let cli = server.cli().await;
    match kind {
        Harm::ScriptsFlushed => cli.script_flush().await,
        // Not the servers' own connections among each other.
        _ => {
            for kind in ["normal", "pubsub"] {
                cli.query::<u64>(&["CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes"]).await;
            }
        }
    }
}
