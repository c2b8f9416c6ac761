//! The doors to this engine for [`fuzzing`](crate::engines::fuzzing).

#![allow(missing_docs, reason = "the doors are named after the rooms")]

use prost::Message;
use tokio::time::Instant;

use super::batch::numbered;
use super::messages::{RangeResponse, TxnResponse, WatchResponse};
use super::names;
use super::requests::{self, Wanted};
use super::session::Session;
use crate::engines::ordered::fuzzed::{is_read, makes_sense};
use crate::engines::ordered::{Entry, NewEntry};
use crate::store::{LockKey, OwnerToken, Sharing};

const LEASE: i64 = 0x7b;

fn contended(keys: &[LockKey], token: OwnerToken) -> Wanted {
    Wanted::new(&NewEntry { keys, token, sharing: Sharing::Exclusive, value: "" })
}

/// Bytes that answer a question to enter these lines: how many entries of ours they are taken to say
/// that there are.
pub fn entered(bytes: &[u8], keys: &[LockKey], token: OwnerToken) -> usize {
    let Ok(answer) = TxnResponse::decode(bytes) else { return 0 };
    let session = Session::new(LEASE, 1, Instant::now());
    let contended = contended(keys, token);
    let _mark = requests::mark_in(&answer);
    let _left = requests::left(&answer).count();
    let Some(lines) = contended.lines_in(&answer) else { return 0 };
    assert_eq!(lines.len(), keys.len());
    lines.iter().for_each(|line| makes_sense(line));
    let ours = contended.ours(&session, &lines);
    let several = keys.len() > 1;
    let place = names::place_in_line(token, Sharing::Exclusive, several, LEASE);
    let whole = |entry: &Entry| {
        keys.iter().any(|key| *entry.id == *[&names::line_of(key), place.as_str()].concat())
    };
    assert!(ours.iter().all(whole), "another's entry is taken for ours");
    let claims = [ours];
    let entries = numbered(&claims);
    let there = requests::confirmed(&entries, &answer);
    assert!(there.len() <= entries.len(), "more is confirmed than was asked");
    claims[0].len()
}

/// Bytes that answer a look at a line, or come from a watch.
pub fn looked(bytes: &[u8], key: &LockKey) {
    let _event = WatchResponse::decode(bytes);
    let Ok(answer) = RangeResponse::decode(bytes) else { return };
    for kv in &answer.kvs {
        is_read(&String::from_utf8_lossy(&kv.value));
    }
    makes_sense(&names::entries(&names::line_of(key), answer.kvs));
}

/// What a server that keeps to the rules answers, for the fuzzer to begin with.
pub fn grant(keys: &[LockKey], token: OwnerToken) -> Vec<u8> {
    use super::messages::{Answer, KeyValue, ResponseOp};
    let several = keys.len() > 1;
    let place = names::place_in_line(token, Sharing::Exclusive, several, LEASE);
    let line = |key: &LockKey| {
        let id = [&names::line_of(key), place.as_str()].concat();
        let kv = KeyValue { key: id.into(), create_revision: 9, ..KeyValue::default() };
        ResponseOp { answer: Some(Answer::Range(RangeResponse { kvs: vec![kv], more: false })) }
    };
    let responses = keys.iter().map(line).collect();
    TxnResponse { succeeded: true, responses, ..TxnResponse::default() }.encode_to_vec()
}
