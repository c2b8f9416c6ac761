//! A notation for histories in one line of text: `a:acquire b:acquire a:=7 a:release=ok b:=8`.
//!
//! Each word names a chain, in its own process, and its step: an invocation (`a:acquire`), a
//! response (`a:=7`: ok with this fencing token; `a:=ok`, `a:=no`, `a:=unknown`), both
//! (`a:acquire=7`), or the loss of its hold (`a:lost`). Each word takes one nanosecond.

use std::collections::HashMap;

use lockattr_history::{Event, Kind, Mode, Op, Step, check};

/// Returns the events of a line.
pub(crate) fn history(text: &str) -> Vec<Event> {
    let mut events = Vec::new();
    let mut invoked = HashMap::new();
    for (position, word) in text.split_whitespace().enumerate() {
        let (chain_name, step_text) = word.split_once(':').expect("CHAIN:STEP");
        let process = chain_name.bytes().fold(0, |sum, byte| sum * 256 + u32::from(byte));
        let (op, end) = match step_text.split_once('=') {
            Some((op, end)) => (op, Some(end)),
            None => (step_text, None),
        };
        let mut record = |call, step| {
            let (at, key) = (position as u64, "k".to_owned());
            events.push(Event { at, process, chain: 0, call, key, step });
        };
        if op == "lost" {
            record(position as u64, Step::Lost);
            continue;
        }
        if !op.is_empty() {
            invoked.insert(process, position as u64);
            record(position as u64, Step::Invoke(parse_op(op)));
        }
        let call = invoked[&process];
        match end {
            None => {}
            Some("ok") => record(call, Step::Ok(None)),
            Some("no") => record(call, Step::Fail),
            Some("unknown") => record(call, Step::Unknown),
            Some(fence) => record(call, Step::Ok(Some(fence.parse().expect("a fencing token")))),
        }
    }
    events
}

/// Returns the rules that a line breaks, in order.
pub(crate) fn broken(text: &str) -> Vec<Kind> {
    let violations = check(&history(text)).err().unwrap_or_default();
    violations.into_iter().map(|violation| violation.kind).collect()
}

fn parse_op(op: &str) -> Op {
    match op {
        "acquire" => Op::Acquire(Mode::Exclusive),
        "share" => Op::Acquire(Mode::Shared),
        "reenter" => Op::Reenter,
        "leave" => Op::Leave,
        "check" => Op::Check,
        "renew" => Op::Renew,
        "release" => Op::Release,
        permit => {
            let count = permit.strip_prefix("permit").expect("an operation");
            Op::Acquire(Mode::Permits(count.parse().expect("permitCOUNT")))
        }
    }
}
