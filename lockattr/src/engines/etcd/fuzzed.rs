//! The entry points of this engine for [`fuzzing`](crate::engines::fuzzing).

#![allow(missing_docs, reason = "each function is named after the parser that it fuzzes")]

use prost::Message;
use tokio::time::Instant;

use super::batch::numbered;
use super::messages::{RangeResponse, TxnResponse, WatchResponse};
use super::names;
use super::requests::{self, EnterReply, EnterRequest};
use super::session::Session;
use crate::engines::sequenced::fuzzed::{check_queue, check_value};
use crate::engines::sequenced::{Entry, NewEntry};
use crate::store::{LockKey, OwnerToken, Sharing};

const LEASE: i64 = 0x7b;

fn request(keys: &[LockKey], token: OwnerToken) -> EnterRequest {
    EnterRequest::new(&NewEntry { keys, token, sharing: Sharing::Exclusive, value: "" })
}

/// Reads bytes as the reply to a request to enter these queues. Returns how many entries of this
/// claim are found in it.
pub fn entered(bytes: &[u8], keys: &[LockKey], token: OwnerToken) -> usize {
    let Ok(response) = TxnResponse::decode(bytes) else { return 0 };
    let session = Session::new(LEASE, 1, Instant::now());
    let request = request(keys, token);
    let _mark = requests::key_revision_in(&response);
    let _left = requests::left(&[], &response);
    let ours = match request.read(&session, token, &response) {
        Some(EnterReply::Entered { queues, .. }) => {
            assert_eq!(queues.len(), keys.len());
            queues.iter().for_each(|queue| check_queue(queue));
            let own = |queue: &Vec<Entry>| queue.iter().find(|it| it.token == token).cloned();
            queues.iter().filter_map(own).collect()
        }
        Some(EnterReply::NotEntered { left, .. }) => left,
        Some(EnterReply::NameTaken) | None => Vec::new(),
    };
    let several = keys.len() > 1;
    let name = names::entry_name(token, Sharing::Exclusive, several, LEASE);
    let whole = |entry: &Entry| {
        keys.iter().any(|key| *entry.id == *[&names::queue_prefix(key), name.as_str()].concat())
    };
    assert!(ours.iter().all(whole), "an entry of another claim is taken for ours");
    let claims = [ours];
    let entries = numbered(&claims);
    let there = requests::confirmed(&entries, &response);
    assert!(there.len() <= entries.len(), "more entries are confirmed than were requested");
    claims[0].len()
}

/// Reads bytes as a reply with a queue, or as a message of a watch.
pub fn read(bytes: &[u8], key: &LockKey) {
    let _event = WatchResponse::decode(bytes);
    let Ok(response) = RangeResponse::decode(bytes) else { return };
    for kv in &response.kvs {
        check_value(&String::from_utf8_lossy(&kv.value));
    }
    check_queue(&names::entries(&names::queue_prefix(key), response.kvs));
}

/// Returns the reply of a correct server, for the fuzzer to begin with.
pub fn grant(keys: &[LockKey], token: OwnerToken) -> Vec<u8> {
    use super::messages::{Done, KeyValue, OpResponse, ResponseOp};
    let several = keys.len() > 1;
    let name = names::entry_name(token, Sharing::Exclusive, several, LEASE);
    let queue = |key: &LockKey| {
        let id = [&names::queue_prefix(key), name.as_str()].concat();
        let kv = KeyValue { key: id.into(), create_revision: 9, ..KeyValue::default() };
        ResponseOp {
            response: Some(OpResponse::Range(RangeResponse {
                kvs: vec![kv],
                ..RangeResponse::default()
            })),
        }
    };
    let put = |_| ResponseOp { response: Some(OpResponse::Put(Done {})) };
    let responses = keys.iter().map(put).chain(keys.iter().map(queue)).collect();
    let among_others = TxnResponse { succeeded: true, responses, ..TxnResponse::default() };
    let responses = vec![ResponseOp { response: Some(OpResponse::Txn(among_others)) }];
    TxnResponse { responses, ..TxnResponse::default() }.encode_to_vec()
}
