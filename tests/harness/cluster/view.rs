//! One node's view of the cluster.

use std::ops::RangeInclusive;

use crate::RedisServer;

/// The reply to `CLUSTER NODES`, and whether the node serves.
pub(super) struct View {
    ok: bool,
    nodes: Vec<NodeEntry>,
}

/// One line of `CLUSTER NODES`.
struct NodeEntry {
    id: String,
    flags: Vec<String>,
    master: String,
    epoch: u64,
    slots: Vec<RangeInclusive<u16>>,
}

impl View {
    /// Queries a node; `None` if it is down or paused.
    pub(super) async fn query(node: &RedisServer) -> Option<Self> {
        let info: String = node.try_query(&["CLUSTER", "INFO"]).await?;
        let nodes: String = node.try_query(&["CLUSTER", "NODES"]).await?;
        let nodes = nodes.lines().map(NodeEntry::parse).collect::<Option<_>>()?;
        Some(Self { ok: info.contains("cluster_state:ok"), nodes })
    }

    pub(super) fn is_ok(&self) -> bool {
        self.ok
    }

    /// Returns whether it knows this many nodes, all of them healthy, and this many masters with
    /// slots.
    pub(super) fn is_whole(&self, nodes: usize, masters: usize) -> bool {
        let bad_flags = ["handshake", "noaddr", "fail", "fail?"];
        let is_healthy = |entry: &NodeEntry| !bad_flags.into_iter().any(|flag| entry.is(flag));
        let with_slots = self.nodes.iter().filter(|entry| !entry.slots.is_empty()).count();
        let replicas = self.nodes.iter().filter(|entry| entry.is("slave")).count();
        self.nodes.len() == nodes
            && self.nodes.iter().all(is_healthy)
            && with_slots == masters
            && with_slots + replicas == nodes
    }

    /// Returns whether it knows the node with this id.
    pub(super) fn knows(&self, id: &str) -> bool {
        self.nodes.iter().any(|entry| entry.id == id)
    }

    /// Returns the epoch of the node's own claim to this slot, if it has one. A greater epoch is
    /// newer.
    pub(super) fn own_epoch_of(&self, slot: u16) -> Option<u64> {
        let own = self.nodes.iter().find(|entry| entry.is("myself"))?;
        let serves = own.is("master") && own.slots.iter().any(|range| range.contains(&slot));
        serves.then_some(own.epoch)
    }

    /// Returns whether the node is a replica of the node with this id.
    pub(super) fn is_replica_of(&self, id: &str) -> bool {
        self.nodes.iter().any(|entry| entry.is("myself") && entry.is("slave") && entry.master == id)
    }

    /// Returns whether the node sees slots at the node with this id.
    pub(super) fn has_slots(&self, id: &str) -> bool {
        self.nodes.iter().any(|entry| entry.id == id && !entry.slots.is_empty())
    }
}

impl NodeEntry {
    /// Parses `id address flags master ping pong epoch link slot…`. Slots that are being moved are
    /// listed in brackets, besides those that the node has.
    fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        let slots = words.get(8..).unwrap_or_default().iter();
        Some(Self {
            id: (*words.first()?).to_owned(),
            flags: words.get(2)?.split(',').map(str::to_owned).collect(),
            master: (*words.get(3)?).to_owned(),
            epoch: words.get(6)?.parse().ok()?,
            slots: slots.filter_map(|word| parse_range(word)).collect(),
        })
    }

    fn is(&self, flag: &str) -> bool {
        self.flags.iter().any(|it| it == flag)
    }
}

fn parse_range(word: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    Some(first.parse().ok()?..=last.parse().ok()?)
}
