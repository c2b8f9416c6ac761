//! The doors to this engine for [`fuzzing`](crate::engines::fuzzing).

#![allow(missing_docs, reason = "the doors are named after the rooms")]

use super::names;
use crate::engines::sequenced::fuzzed::check_queue;

/// A line, as the servers tell the names of its nodes.
pub fn queue(children: Vec<String>) {
    let queue = names::entries(children.clone());
    for entry in &queue {
        assert!(children.iter().any(|child| **child == *entry.id), "an entry out of nothing");
        // Read or not, without a panic.
        let _session = names::session(entry);
    }
    check_queue(&queue);
}
