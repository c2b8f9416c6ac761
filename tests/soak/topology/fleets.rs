//! The faults that all groups of several Redis servers share.

use lockattr_tests::RedisServer;

use crate::nemesis::Harm;

pub(super) async fn forget(server: &RedisServer, kind: Harm) {
    let cli = server.cli().await;
    match kind {
        Harm::ScriptsFlushed => cli.script_flush().await,
        // Without the connections between the servers.
        _ => {
            for kind in ["normal", "pubsub"] {
                cli.query::<u64>(&["CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes"]).await;
            }
        }
    }
}
