//! Redis behind sentinels.

use std::time::Duration;

use lockattr_tests::{Engine, Sentinels};
use tokio::time::sleep;

use super::fleets::{durable, forget, no_engine_of_its_own};
use super::{PROCESS, REDIS_LINES_LAST, Topology};
use crate::weather::{Harm, Spell, Trouble};

/// A master with two replicas, both of which must have a lease before it counts.
pub(crate) struct Sentinel(Sentinels);

impl Engine for Sentinel {
    async fn start() -> Self {
        let sentinels = Sentinels::builder().servers(durable()).start().await;
        let cli = sentinels.master().await.cli().await;
        // Replicas are counted from their first word on.
        cli.query::<()>(&["SET", "lockattr:test:fence", "replicated"]).await;
        cli.query::<usize>(&["WAIT", "2", "20000"]).await;
        Self(sentinels)
    }

    no_engine_of_its_own!("all servers at once");
}

impl Topology for Sentinel {
    const SETTINGS: &'static str = "&replicas=2";
    const LINES_LAST: Duration = REDIS_LINES_LAST;
    const TROUBLES: &'static [Trouble] = PROCESS;
    const HARMS: &'static [Harm] = &[
        Harm::FailedOver,
        Harm::MasterFrozen,
        Harm::SwitchedOver,
        Harm::OneKilled,
        Harm::OneFrozen,
        Harm::ClientsKilled,
        Harm::ScriptsFlushed,
    ];

    async fn suffer(&self, spell: Spell<Harm>) {
        let sentinels = &self.0;
        let master = sentinels.master().await;
        match spell.kind {
            Harm::FailedOver => {
                master.kill();
                sentinels.failed_over(master).await;
                sleep(spell.lasts / 4).await;
                master.revive().await;
            }
            Harm::MasterFrozen => master.while_stopped(sleep(spell.lasts)).await,
            Harm::SwitchedOver => drop(sentinels.switch_over().await),
            Harm::OneKilled => {
                let replica = sentinels.replicas().await[spell.pick % 2];
                replica.kill();
                sleep(spell.lasts).await;
                replica.revive().await;
            }
            Harm::OneFrozen => {
                let replica = sentinels.replicas().await[spell.pick % 2];
                replica.while_stopped(sleep(spell.lasts)).await;
            }
            kind => return forget(master, kind).await,
        }
        sentinels.settled().await;
    }
}
