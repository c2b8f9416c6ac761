//! Redis Cluster.

use std::time::Duration;

use lockattr_tests::Cluster;
use tokio::time::sleep;

use super::fleets::forget;
use super::{PROCESS, REDIS_QUEUE_LASTS, Topology};
use crate::nemesis::{Attack, Harm, Trouble};
use crate::worker::{KEYS, LEADER};

/// Three masters with a replica each; a lease counts only once the replica has it.
impl Topology for Cluster {
    const SETTINGS: &'static str = "&replicas=1";
    const QUEUE_LASTS: Duration = REDIS_QUEUE_LASTS;
    const TROUBLES: &'static [Trouble] = PROCESS;
    const HARMS: &'static [Harm] = &[
        Harm::FailedOver,
        Harm::MasterFrozen,
        Harm::SwitchedOver,
        Harm::OneKilled,
        Harm::SlotMoved,
        Harm::ClientsKilled,
        Harm::ScriptsFlushed,
    ];

    async fn suffer(&self, attack: Attack<Harm>) {
        let cluster = self;
        let key = KEYS.get(attack.pick % (KEYS.len() + 1)).unwrap_or(&LEADER);
        let slot = cluster.slot_of(&format!("lock:{key}"));
        let master = cluster.master_of(slot).await;
        match attack.kind {
            Harm::FailedOver => {
                master.kill();
                cluster.failed_over(master).await;
                sleep(attack.lasts / 4).await;
                master.revive().await;
            }
            Harm::MasterFrozen => {
                let replaced = async {
                    sleep(attack.lasts / 2).await;
                    cluster.failed_over(master).await;
                };
                master.while_stopped(replaced).await;
            }
            Harm::SwitchedOver => drop(cluster.switch_over(slot).await),
            Harm::OneKilled => {
                let replica = cluster.replica_of(slot).await.expect("all was well before");
                replica.kill();
                sleep(attack.lasts).await;
                replica.revive().await;
            }
            Harm::SlotMoved => return moves(self, slot, attack.pick).await,
            kind => return forget(master, kind).await,
        }
        cluster.settled().await;
    }
}

/// Moves the slot with all its keys to one of the other masters, again until no key was added
/// meanwhile.
async fn moves(cluster: &Cluster, slot: u16, pick: usize) {
    let from = cluster.master_of(slot).await;
    let mut others = Vec::new();
    for share in 0..3 {
        // A slot of each master, as the cluster was set up; other slots are rarely moved.
        let master = cluster.master_of(share * 5461 + 1).await;
        if master.addr() != from.addr() {
            others.push(master);
        }
    }
    let to = others[pick % others.len()];
    cluster.begin_migration(slot, to).await;
    while cluster.move_keys(slot, from, to).await > 0 {}
    cluster.end_migration(slot, from, to).await;
}
