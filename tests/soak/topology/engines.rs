//! One server of each engine, or one ensemble.

use std::time::Duration;

use lockattr_tests::{Engine, Etcd, MariaDb, PostgresServer, RedisServer, ZooKeeper};
use tokio::time::sleep;

use super::{REDIS_QUEUE_LASTS, Topology};
use crate::nemesis::{Attack, Harm};

/// What any engine survives.
pub(super) async fn suffer(engine: &impl Engine, attack: Attack<Harm>) {
    match attack.kind {
        Harm::Restarted => engine.restart().await,
        Harm::Frozen => {
            engine.freeze();
            sleep(attack.lasts).await;
            engine.thaw();
        }
        harm => unreachable!("{harm:?} is not in its list"),
    }
}

impl Topology for RedisServer {
    const HARMS: &'static [Harm] =
        &[Harm::Restarted, Harm::Frozen, Harm::ClientsKilled, Harm::ScriptsFlushed];
    const QUEUE_LASTS: Duration = REDIS_QUEUE_LASTS;

    async fn suffer(&self, attack: Attack<Harm>) {
        match attack.kind {
            Harm::ClientsKilled => drop(self.cli().await.client_kill_all_others().await),
            Harm::ScriptsFlushed => self.cli().await.script_flush().await,
            _ => suffer(self, attack).await,
        }
    }
}

impl Topology for PostgresServer {
    const HARMS: &'static [Harm] = &[Harm::Restarted, Harm::Frozen, Harm::ClientsKilled];
    const ENTRIES_END: bool = false;

    async fn suffer(&self, attack: Attack<Harm>) {
        match attack.kind {
            Harm::ClientsKilled => {
                let kill = "select pg_terminate_backend(pid) from pg_stat_activity \
                            where backend_type = 'client backend' and pid <> pg_backend_pid()";
                self.run(kill).await;
            }
            _ => suffer(self, attack).await,
        }
    }

    async fn sweep_is_due(&self) {
        self.run("update lockattr_sweep set due = '-infinity'").await;
    }
}

impl Topology for MariaDb {
    const HARMS: &'static [Harm] = &[Harm::Restarted, Harm::Frozen, Harm::ClientsKilled];
    const ENTRIES_END: bool = false;

    async fn suffer(&self, attack: Attack<Harm>) {
        match attack.kind {
            Harm::ClientsKilled => {
                let all = "SELECT id FROM information_schema.processlist \
                           WHERE command <> 'Daemon' AND id <> CONNECTION_ID() AND user LIKE 'lock%'";
                for id in self.query::<u64>("mysql", all).await {
                    let kill = format!("KILL {id}");
                    // A connection that has ended meanwhile can no longer be killed.
                    let mut cli = self.cli("mysql").await;
                    mysql_async::prelude::Queryable::query_drop(&mut cli, kill).await.ok();
                }
            }
            _ => suffer(self, attack).await,
        }
    }

    async fn sweep_is_due(&self) {
        self.execute("lockattr", "UPDATE lockattr_v2_sweep SET due = 0").await;
    }
}

impl Topology for ZooKeeper {
    const HARMS: &'static [Harm] =
        &[Harm::Restarted, Harm::Frozen, Harm::OneKilled, Harm::OneFrozen];

    async fn suffer(&self, attack: Attack<Harm>) {
        let nth = attack.pick % self.addrs().len();
        match attack.kind {
            Harm::OneKilled => {
                self.kill_one(nth);
                sleep(attack.lasts).await;
                self.revive_one(nth).await;
            }
            Harm::OneFrozen => {
                self.freeze_one(nth);
                sleep(attack.lasts).await;
                self.thaw_one(nth);
            }
            _ => suffer(self, attack).await,
        }
    }
}

impl Topology for Etcd {
    /// No stopped member: before 3.4.31 and 3.5.13, a leader that is stopped and replaced may
    /// revoke the sessions that its successor has kept (etcd's issue 15247).
    const HARMS: &'static [Harm] = &[Harm::Restarted, Harm::Frozen, Harm::OneKilled];

    async fn suffer(&self, attack: Attack<Harm>) {
        match attack.kind {
            Harm::OneKilled => {
                let nth = attack.pick % self.addrs().len();
                self.kill(nth);
                sleep(attack.lasts).await;
                self.revive(nth).await;
            }
            _ => suffer(self, attack).await,
        }
    }
}
