//! The entry points of this engine for [`fuzzing`](crate::engines::fuzzing).

#![allow(missing_docs, reason = "each function is named after the parser that it fuzzes")]

use super::names;
use crate::engines::sequenced::fuzzed::check_queue;

/// Reads a queue from the names of its nodes, as servers send them.
pub fn queue(children: Vec<String>) {
    let queue = names::entries(children.clone());
    for entry in &queue {
        assert!(children.iter().any(|child| **child == *entry.id), "an entry that no child has");
        // With any result, but without a panic.
        let _session = names::session(entry);
    }
    check_queue(&queue);
}
