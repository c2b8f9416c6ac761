//! Judges waits: how much a dead, stopped or cut-off process may delay others, and when a caller
//! may learn of an outage.
//!
//! A lock that its waiter could have, given what living processes hold and wait for, is granted
//! within [`Plan::bound`] after the last fault. And a caller must not get a store error if nothing
//! was wrong between it and its servers.

use std::collections::BTreeSet;
use std::time::Duration;

use lockattr_history::Mode;

use crate::event_log::{EventLog, Note, What};
use crate::plan::{Fault, Plan, Topology};
use crate::process::Process;

/// How long a process may use something broken before it notices and replaces it: a connection, or
/// a request that gets no reply.
const DETECTED_WITHIN: Duration = Duration::from_secs(3);

/// How many findings are listed.
const LISTED: usize = 3;

/// Returns what is wrong with the waits.
pub(crate) fn faults(plan: &Plan, event_log: &EventLog) -> Vec<String> {
    let judge = Judge { plan, notes: event_log.notes() };
    let waits = judge.notes.iter().filter(|note| note.what != What::Held);
    let found = waits.filter_map(|wait| judge.starved(wait).or_else(|| judge.failed(wait)));
    let mut found: Vec<_> = found.collect();
    let more = found.len().saturating_sub(LISTED);
    found.truncate(LISTED);
    found.extend((more > 0).then(|| format!("and {more} more that waited")));
    found
}

struct Judge<'a> {
    plan: &'a Plan,
    notes: Vec<Note>,
}

impl Judge<'_> {
    /// Finds a wait that was longer than the bound, for a lock that could be acquired.
    fn starved(&self, wait: &Note) -> Option<String> {
        let bound = self.plan.bound;
        if wait.ended.saturating_sub(wait.began) <= bound {
            return None;
        }
        let mut since = wait.began;
        let times = self.changes(wait);
        for (&from, &to) in times.iter().zip(times.iter().skip(1)) {
            if self.something_begins_or_ends(from) {
                since = from;
            }
            if !self.could_be_granted(wait, from) {
                since = to;
            } else if to - since > bound {
                let (from, to) = (since.as_millis(), to.as_millis());
                return Some(format!(
                    "{} starves: {:?} {:?} was available from {from} ms to {to} ms, given what living \
                     processes hold and wait for",
                    Process::name(wait.process),
                    wait.keys,
                    wait.mode
                ));
            }
        }
        None
    }

    /// Returns whether the living processes would let the waiter have the lock at that time.
    fn could_be_granted(&self, wait: &Note, at: Duration) -> bool {
        let alive = |note: &&Note| note.spans(at) && self.is_well(note.process, at);
        let living: Vec<_> = self.notes.iter().filter(alive).collect();
        let admits = |wait: &Note| {
            let held = living.iter().filter(|note| note.what == What::Held && note.meets(wait));
            let held: Vec<_> = held.collect();
            held.is_empty()
                || match wait.mode {
                    Mode::Exclusive => false,
                    Mode::Shared => held.iter().all(|note| note.mode == Mode::Shared),
                    Mode::Permits(permits) => {
                        let is_permit = |note: &&&&Note| matches!(note.mode, Mode::Permits(_));
                        held.iter().all(|note| is_permit(&note)) && held.len() < permits as usize
                    }
                }
        };
        let mut others = living.iter().filter(|note| note.what != What::Held && note.meets(wait));
        self.is_well(wait.process, at) && admits(wait) && others.all(|other| admits(other))
    }

    /// Finds a store error although nothing was wrong.
    fn failed(&self, wait: &Note) -> Option<String> {
        let What::Failed(error) = &wait.what else { return None };
        if self.plan.topology == Topology::Redlock && wait.mode != Mode::Exclusive {
            // If the servers gave different tokens to claims that share, that is also an error of
            // the store.
            return None;
        }
        let near =
            |fault: &&Fault| fault.at <= wait.ended && wait.began <= fault.until + DETECTED_WITHIN;
        let mut near = self.troubles().filter(near);
        if near.any(|fault| fault.trouble.affects(wait.process)) {
            return None;
        }
        let at = wait.ended;
        let holds = |note: &&Note| note.what == What::Held && note.meets(wait) && note.spans(at);
        let holder = self.notes.iter().find(holds).map_or("no task", |_| "another task");
        Some(format!(
            "{} gets a store error from healthy servers at {} ms: {error}; with `run_unlocked` its \
             body runs while {holder} holds",
            Process::name(wait.process),
            at.as_millis()
        ))
    }

    /// Returns whether the process runs and reaches its servers.
    fn is_well(&self, process: usize, at: Duration) -> bool {
        let now = |fault: &&Fault| (fault.at..fault.until).contains(&at);
        !self.troubles().filter(now).any(|fault| fault.trouble.affects(process))
    }

    fn something_begins_or_ends(&self, at: Duration) -> bool {
        self.troubles().any(|fault| fault.at == at || fault.until == at)
    }

    /// The times of all changes from the beginning of this wait to its end.
    fn changes(&self, wait: &Note) -> BTreeSet<Duration> {
        let notes = self.notes.iter().flat_map(|note| [note.began, note.ended]);
        let faults = self.troubles().flat_map(|fault| [fault.at, fault.until]);
        let all = notes.chain(faults);
        all.filter(|at| (wait.began..=wait.ended).contains(at)).collect()
    }

    /// The faults that may excuse a wait. A calendar jump does not.
    fn troubles(&self) -> impl Iterator<Item = &Fault> {
        self.plan.faults.iter().filter(|fault| !fault.trouble.is_of_a_calendar())
    }
}
