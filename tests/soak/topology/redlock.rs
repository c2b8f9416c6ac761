//! A quorum of independent Redis.

use std::time::Duration;

use lockattr_tests::{Engine, Independents, RedisServer};
use tokio::time::sleep;

use super::fleets::{durable, forget, left_on};
use super::{REDIS_LINES_LAST, Topology};
use crate::weather::{Harm, Spell};

/// Five servers that have each write on their disk before they answer.
pub(crate) struct Redlock(Independents);

impl Engine for Redlock {
    async fn start() -> Self {
        Self(Independents::builder().servers(durable()).start().await)
    }

    fn addrs(&self) -> Vec<String> {
        self.0.nodes().iter().map(RedisServer::addr).collect()
    }

    fn url_at(&self, addrs: &[String]) -> String {
        format!("redlock://{}", addrs.join(","))
    }

    async fn left(&self) -> Vec<String> {
        left_on(&self.0).await
    }

    async fn restart(&self) {
        for node in self.0.nodes() {
            node.kill();
        }
        for node in self.0.nodes() {
            node.revive().await;
        }
    }

    fn freeze(&self) {
        self.0.nodes().iter().for_each(RedisServer::stop_signal);
    }

    fn thaw(&self) {
        self.0.nodes().iter().for_each(RedisServer::continue_signal);
    }
}

impl Topology for Redlock {
    const SETTINGS: &'static str = "&durable=true";
    const LINES_LAST: Duration = REDIS_LINES_LAST;
    const HARMS: &'static [Harm] = &[
        Harm::Restarted,
        Harm::Frozen,
        Harm::OneKilled,
        Harm::OneFrozen,
        Harm::ClientsKilled,
        Harm::ScriptsFlushed,
    ];

    async fn suffer(&self, spell: Spell<Harm>) {
        let node = self.0.node(spell.pick % 5);
        match spell.kind {
            Harm::OneKilled => {
                node.kill();
                sleep(spell.lasts).await;
                node.revive().await;
            }
            Harm::OneFrozen => node.while_stopped(sleep(spell.lasts)).await,
            kind @ (Harm::ClientsKilled | Harm::ScriptsFlushed) => forget(node, kind).await,
            _ => super::engines::suffer(self, spell).await,
        }
    }
}
