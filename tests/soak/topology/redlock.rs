//! A quorum of independent Redis servers.

use std::time::Duration;

use lockattr_tests::Independents;
use tokio::time::sleep;

use super::fleets::forget;
use super::{REDIS_QUEUE_LASTS, Topology};
use crate::nemesis::{Attack, Harm};

/// Five servers, each of which writes to disk before it answers.
impl Topology for Independents {
    const QUEUE_LASTS: Duration = REDIS_QUEUE_LASTS;
    const HARMS: &'static [Harm] = &[
        Harm::Restarted,
        Harm::Frozen,
        Harm::OneKilled,
        Harm::OneFrozen,
        Harm::ClientsKilled,
        Harm::ScriptsFlushed,
    ];

    async fn suffer(&self, attack: Attack<Harm>) {
        let node = self.node(attack.pick % 5);
        match attack.kind {
            Harm::OneKilled => {
                node.kill();
                sleep(attack.lasts).await;
                node.revive().await;
            }
            Harm::OneFrozen => node.while_stopped(sleep(attack.lasts)).await,
            kind @ (Harm::ClientsKilled | Harm::ScriptsFlushed) => forget(node, kind).await,
            _ => super::engines::suffer(self, attack).await,
        }
    }
}
