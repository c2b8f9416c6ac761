//! The map of a cluster, as one of its nodes reports it.

use std::ops::RangeInclusive;

use redis::Value;

use super::slot::SLOTS;

/// A range of slots, and the address of its master.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) slots: RangeInclusive<u16>,
    /// Host and port; without a host, that of the node that replied.
    pub(super) address: String,
}

/// Reads the reply to `CLUSTER SLOTS`: for each range its first and last slot, then its nodes, the
/// master first, each as host, port and more.
pub(super) fn read(reply: Value) -> Option<Vec<Share>> {
    let Value::Array(ranges) = reply else { return None };
    ranges.into_iter().map(share).collect()
}

fn share(range: Value) -> Option<Share> {
    let Value::Array(parts) = range else { return None };
    let [Value::Int(first), Value::Int(last), Value::Array(master), ..] = parts.as_slice() else {
        return None;
    };
    let [host, Value::Int(port), ..] = master.as_slice() else { return None };
    let host = match host {
        Value::BulkString(host) => String::from_utf8(host.clone()).ok()?,
        Value::SimpleString(host) => host.clone(),
        // The cluster itself does not know the node's host.
        Value::Nil => String::new(),
        _ => return None,
    };
    let (first, last) = (u16::try_from(*first).ok()?, u16::try_from(*last).ok()?);
    (last < SLOTS).then(|| Share { slots: first..=last, address: format!("{host}:{port}") })
}

#[cfg(test)]
mod tests {
    use redis::Value;

    use super::read;

    fn node(host: Value, port: i64) -> Value {
        Value::Array(vec![host, Value::Int(port), Value::BulkString(b"id".to_vec())])
    }

    fn range(first: i64, last: i64, nodes: Vec<Value>) -> Value {
        Value::Array([vec![Value::Int(first), Value::Int(last)], nodes].concat())
    }

    #[test]
    fn the_first_node_of_a_range_has_it() {
        let host = |name: &str| Value::BulkString(name.as_bytes().to_vec());
        let master = node(host("10.0.0.1"), 7000);
        let reply = Value::Array(vec![
            range(0, 99, vec![master, node(host("10.0.0.2"), 7001)]),
            range(100, 16_383, vec![node(Value::Nil, 7002)]),
        ]);
        let shares = read(reply).expect("a valid map");
        let shares: Vec<_> =
            shares.iter().map(|share| (share.slots.clone(), share.address.as_str())).collect();
        assert_eq!(shares, [(0..=99, "10.0.0.1:7000"), (100..=16_383, ":7002")]);
    }

    #[test]
    fn what_makes_no_sense_is_no_map() {
        let no_node = range(0, 99, Vec::new());
        let beyond = range(0, 16_384, vec![node(Value::Nil, 7002)]);
        for reply in [Value::Nil, Value::Array(vec![no_node]), Value::Array(vec![beyond])] {
            assert_eq!(read(reply), None);
        }
    }
}
