//! Fuzzes queues with any nodes of ZooKeeper and any responses of etcd: no panic, no entry is taken
//! for another claim's, and a claim that is not the head waits for an earlier one.

#![no_main]

use std::sync::LazyLock;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use lockattr::store::fuzzing::{etcd, zookeeper};
use lockattr::store::{Claim, LockKey, OwnerToken};

#[derive(Arbitrary, Debug)]
enum Input<'a> {
    Zookeeper(Vec<Node<'a>>),
    Etcd(&'a [u8]),
    /// The response of a correct server, with some bytes changed.
    EtcdChanged {
        several: bool,
        changes: Vec<(u16, u8)>,
        cut: Option<u16>,
    },
}

#[derive(Arbitrary, Debug)]
enum Node<'a> {
    Entry { mode: Mode, session: u64, sequence: i32 },
    Any(&'a str),
}

#[derive(Arbitrary, Debug)]
enum Mode {
    Exclusive,
    Shared,
    Permits(u32),
    Several(u32),
}

static TOKEN: LazyLock<OwnerToken> = LazyLock::new(|| Claim::new(key("a"), "").token());

fn key(name: &str) -> LockKey {
    LockKey::new("lock:", name).expect("a key")
}

fuzz_target!(|input: Input<'_>| {
    match input {
        Input::Zookeeper(nodes) => zookeeper::queue(nodes.iter().map(name).collect()),
        Input::Etcd(bytes) => {
            etcd::read(bytes, &key("a"));
            etcd::entered(bytes, &[key("a"), key("b")], *TOKEN);
        }
        Input::EtcdChanged { several, changes, cut } => {
            let keys = if several { vec![key("a"), key("b")] } else { vec![key("a")] };
            let mut bytes = etcd::grant(&keys, *TOKEN);
            assert_eq!(etcd::entered(&bytes, &keys, *TOKEN), keys.len(), "a correct response");
            for (at, to) in changes {
                let at = usize::from(at) % bytes.len();
                bytes[at] = to;
            }
            bytes.truncate(cut.map_or(usize::MAX, usize::from));
            etcd::entered(&bytes, &keys, *TOKEN);
            etcd::read(&bytes, &keys[0]);
        }
    }
});

fn name(node: &Node<'_>) -> String {
    let token = *TOKEN;
    match node {
        Node::Any(text) => (*text).to_owned(),
        Node::Entry { mode, session, sequence } => {
            let mode = match mode {
                Mode::Exclusive => "x".to_owned(),
                Mode::Shared => "s".to_owned(),
                Mode::Permits(most) => format!("p{most}"),
                Mode::Several(most) => format!("mp{most}"),
            };
            format!("{mode}-{token}-{session:016x}-{sequence:010}")
        }
    }
}
