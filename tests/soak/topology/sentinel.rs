//! Redis behind sentinels.

use std::time::Duration;

use lockattr_tests::Sentinels;
use tokio::time::sleep;

use super::fleets::forget;
use super::{PROCESS, REDIS_QUEUE_LASTS, Topology};
use crate::nemesis::{Attack, Harm, Trouble};

/// A master with two replicas; a lease counts only once both have it.
impl Topology for Sentinels {
    const SETTINGS: &'static str = "&replicas=2";
    const QUEUE_LASTS: Duration = REDIS_QUEUE_LASTS;
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

    async fn suffer(&self, attack: Attack<Harm>) {
        let sentinels = self;
        let master = sentinels.master().await;
        match attack.kind {
            Harm::FailedOver => {
                master.kill();
                sentinels.failed_over(master).await;
                sleep(attack.lasts / 4).await;
                master.revive().await;
            }
            Harm::MasterFrozen => {
                let replaced = async {
                    sleep(attack.lasts / 2).await;
                    sentinels.failed_over(master).await;
                };
                master.while_stopped(replaced).await;
            }
            Harm::SwitchedOver => drop(sentinels.switch_over().await),
            Harm::OneKilled => {
                let replica = sentinels.replicas().await[attack.pick % 2];
                replica.kill();
                sleep(attack.lasts).await;
                replica.revive().await;
            }
            Harm::OneFrozen => {
                let replica = sentinels.replicas().await[attack.pick % 2];
                replica.while_stopped(sleep(attack.lasts)).await;
            }
            kind => return forget(master, kind).await,
        }
        sentinels.settled().await;
    }
}
