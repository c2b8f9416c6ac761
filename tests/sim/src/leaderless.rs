//! Judges leaders by time: how long a key may be without a leader, and how long a term may last.
//!
//! While a process campaigns that runs and reaches its servers, a key is without a leader for at
//! most [`Plan::bound`] after the last fault. If nothing else goes wrong, a leader that was killed
//! or silent for too long is replaced within its TTL and a second, and one that ended its term
//! within a second.

mod replaced;

use std::collections::BTreeSet;
use std::time::Duration;

use crate::plan::{Fault, Plan, Trouble};
use crate::process::Process;
use crate::term_log::{Notes, Span, TermLog};

/// How late a body may be dropped: a step of the simulation, and a timer.
const LATE: Duration = Duration::from_millis(20);

/// How many findings are listed.
const LISTED: usize = 3;

/// The leaders that were replaced in time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Replaced {
    /// Those that were killed while nothing else went wrong.
    pub killed: u64,
    /// Those that were silent for too long while nothing else went wrong.
    pub silent: u64,
    /// Those that gave their lock back while nothing went wrong.
    pub over: u64,
    /// The longest time until one of these was replaced, beyond the TTL of one that was killed or
    /// silent.
    pub late: Duration,
    /// The longest time without a leader since any fault, while a process could have led.
    pub without_leader: Duration,
}

impl Replaced {
    /// Adds those of another world.
    pub(crate) fn add(&mut self, more: Self) {
        self.killed += more.killed;
        self.silent += more.silent;
        self.over += more.over;
        self.late = self.late.max(more.late);
        self.without_leader = self.without_leader.max(more.without_leader);
    }
}

/// Returns what is wrong, and the leaders that were replaced in time.
pub(crate) fn faults(plan: &Plan, log: &TermLog) -> (Vec<String>, Replaced) {
    let mut judge = Judge { plan, notes: log.notes(), replaced: Replaced::default() };
    let mut found = Vec::new();
    for key in plan.leader_keys() {
        for process in 0..plan.processes.len() {
            found.extend(judge.without_leader(key, process));
        }
        for gone in judge.gone(key) {
            found.extend(judge.not_replaced(key, &gone));
        }
    }
    found.extend(judge.too_long());
    let more = found.len().saturating_sub(LISTED);
    found.truncate(LISTED);
    found.extend((more > 0).then(|| format!("and {more} more about leaders")));
    (found, judge.replaced)
}

struct Judge<'a> {
    plan: &'a Plan,
    notes: Notes,
    replaced: Replaced,
}

impl Judge<'_> {
    /// Finds a time in which this process could have led, and no process did.
    fn without_leader(&mut self, key: &str, process: usize) -> Option<String> {
        let mut since = None;
        let times = self.changes();
        for (&from, &to) in times.iter().zip(times.iter().skip(1)) {
            if !self.campaigns(key, process, from) || self.has_leader(key, from) {
                since = None;
                continue;
            }
            if since.is_none() || self.something_begins_or_ends(from) {
                since = Some(from);
            }
            let since = since.unwrap_or(from);
            self.replaced.without_leader = self.replaced.without_leader.max(to - since);
            if to - since > self.plan.bound {
                let (name, from, to) = (Process::name(process), since.as_millis(), to.as_millis());
                return Some(format!(
                    "`{key}` has no leader from {from} ms to {to} ms, although {name} campaigns"
                ));
            }
        }
        None
    }

    /// Finds terms that went on for longer than their options allow, in processes that ran.
    fn too_long(&self) -> Vec<String> {
        let mut found = Vec::new();
        for term in &self.notes.terms {
            let limits = [
                ("max_hold", term.campaign.max_hold, term.began),
                ("progress_within", term.campaign.progress_within, term.progress),
            ];
            for (option, limit, since) in limits {
                let lasted = term.ended.saturating_sub(since);
                if let Some(limit) = limit
                    && lasted > limit + LATE
                    && !self.stood_still(term, since)
                {
                    let (name, began) = (Process::name(term.process), term.began.as_millis());
                    found.push(format!(
                        "the term of {name} from {began} ms outlived its `{option}` ({limit:?}): \
                         {lasted:?}"
                    ));
                }
            }
        }
        found
    }

    /// Returns whether the leader's process was paused or killed between this time and the end of
    /// the term.
    fn stood_still(&self, term: &Span, since: Duration) -> bool {
        self.plan.faults.iter().any(|fault| match fault.trouble {
            Trouble::Pause(which) | Trouble::Kill(which) => {
                which == term.process && fault.at <= term.ended && since <= fault.until
            }
            _ => false,
        })
    }

    fn campaigns(&self, key: &str, process: usize, at: Duration) -> bool {
        let of = |span: &&Span| span.campaign.key == key && span.process == process;
        self.is_well(process, at)
            && self.notes.campaigns.iter().filter(of).any(|campaign| campaign.spans(at))
    }

    /// Returns whether a process leads that runs and reaches its servers.
    fn has_leader(&self, key: &str, at: Duration) -> bool {
        let mut terms = self.notes.terms.iter().filter(|term| term.campaign.key == key);
        terms.any(|term| term.spans(at) && self.is_well(term.process, at))
    }

    /// Returns whether the process runs and reaches a majority of the servers.
    fn is_well(&self, process: usize, at: Duration) -> bool {
        let mut away = BTreeSet::new();
        for fault in self.troubles().filter(|fault| (fault.at..fault.until).contains(&at)) {
            match &fault.trouble {
                Trouble::Kill(which) | Trouble::Pause(which) if *which == process => return false,
                Trouble::Partition(which, servers)
                | Trouble::PartitionThere(which, servers)
                | Trouble::PartitionBack(which, servers)
                | Trouble::Hold(which, servers)
                | Trouble::Slow(which, servers, _)
                    if *which == process =>
                {
                    away.extend(servers);
                }
                Trouble::PowerOff(server) => drop(away.insert(server)),
                _ => {}
            }
        }
        away.len() * 2 < self.plan.fast.len()
    }

    fn something_begins_or_ends(&self, at: Duration) -> bool {
        self.troubles().any(|fault| fault.at == at || fault.until == at)
    }

    /// The times of all changes.
    fn changes(&self) -> BTreeSet<Duration> {
        let spans = self.notes.campaigns.iter().chain(&self.notes.terms);
        let spans = spans.flat_map(|span| [span.began, span.ended]);
        let faults = self.troubles().flat_map(|fault| [fault.at, fault.until]);
        spans.chain(faults).filter(|at| *at < Duration::MAX).collect()
    }

    /// The faults that may excuse what they cause. A jump of a calendar excuses nothing.
    fn troubles(&self) -> impl Iterator<Item = &Fault> {
        self.plan.faults.iter().filter(|fault| !fault.trouble.is_of_a_calendar())
    }
}
