//! The checks, one file for each group. `promises.rs` says what each of them checks.

mod absent;
mod companions;
mod deadlocks;
mod done;
mod downgrade;
mod force_release;
mod kept;
mod lease;
mod listing;
mod overtaking;
mod permits;
mod processes;
mod quorum_node;
mod several_keys;
mod shared;
mod tokens;
mod wait_queue;

use std::time::Duration;

pub(crate) use absent::*;
pub(crate) use companions::*;
pub(crate) use deadlocks::*;
pub(crate) use done::*;
pub(crate) use downgrade::*;
pub(crate) use force_release::*;
pub(crate) use kept::*;
pub(crate) use lease::*;
pub(crate) use listing::*;
pub(crate) use overtaking::*;
pub(crate) use permits::*;
pub(crate) use processes::*;
pub(crate) use quorum_node::*;
pub(crate) use several_keys::*;
pub(crate) use shared::*;
pub(crate) use tokens::*;
pub(crate) use wait_queue::*;

/// The usual lease of a check, which does not end before it.
pub(crate) const TTL: Duration = Duration::from_secs(600);
const LONGER: Duration = Duration::from_secs(1_800);
pub(crate) const SHORT: Duration = Duration::from_millis(40);

/// The lease of a manager, which renews it. Some stores refuse longer ones.
const MINUTE: Duration = Duration::from_secs(60);
