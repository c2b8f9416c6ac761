//! Judges leaders by time: how long a key may be without a leader, and how long a term may last.
//!
//! While a process campaigns that runs and reaches its servers, a key is without a leader for at
//! most [`Plan::bound`] after the last fault. If nothing else goes wrong, a leader that was killed
//! or silent for too long is replaced within its TTL and a second, and one that ended its term
//! within a second.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::plan::{Fault, Plan, Trouble};
use crate::process::Process;
use crate::term_log::{Notes, Span, TermLog};

/// How long a fault may matter after its end: a broken connection is detected within 3 seconds, and
/// a request that failed is repeated a second later.
const AFTERMATH: Duration = Duration::from_secs(4);

/// How long a process that was killed may matter to others: its lease, or its place in the queue.
const KILLED: Duration = Duration::from_secs(2);

/// How late a body may be dropped: a step of the simulation, and a timer.
const LATE: Duration = Duration::from_millis(20);

/// How long before its leader is killed a process must have campaigned to be the next.
const QUEUED_WITHIN: Duration = Duration::from_secs(1);

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

/// A leader that no longer leads.
struct Gone {
    process: usize,
    ttl: Duration,
    at: Duration,
    why: Why,
}

/// Why a leader no longer leads.
#[derive(PartialEq, Eq)]
enum Why {
    Killed(Fault),
    Silent,
    /// It resigned, its body returned, or the term was as long as its options allow.
    Over,
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

    /// Returns the leaders of this key, when they no longer led.
    fn gone(&self, key: &str) -> Vec<Gone> {
        let mut gone = Vec::new();
        for term in self.notes.terms.iter().filter(|term| term.campaign.key == key) {
            let (process, ttl) = (term.process, term.campaign.ttl);
            let is_its_end = |fault: &&Fault| {
                matches!(fault.trouble, Trouble::Kill(which) if which == process)
                    && term.ended.abs_diff(fault.at) < LATE
            };
            let (at, why) = if let Some(kill) = self.plan.faults.iter().find(is_its_end) {
                (kill.at, Why::Killed(kill.clone()))
            } else if let Some(at) = self.silent_from(term) {
                (at, Why::Silent)
            } else {
                (term.ended, Why::Over)
            };
            gone.push(Gone { process, ttl, at, why });
        }
        gone
    }

    /// Returns when the term was over because its leader was silent.
    fn silent_from(&self, term: &Span) -> Option<Duration> {
        let at = term.progress + term.campaign.progress_within?;
        let is_over = at <= term.ended + LATE && !self.stood_still(term, term.progress);
        is_over.then_some(at)
    }

    /// Finds a leader that was not replaced in time, although nothing else went wrong and another
    /// process campaigned.
    fn not_replaced(&mut self, key: &str, gone: &Gone) -> Option<String> {
        let at = gone.at;
        let messages = self.plan.latency * 4 + LATE;
        // The next of a leader that gives its lock back waits for no lease.
        let ttl = if gone.why == Why::Over { Duration::ZERO } else { gone.ttl };
        let until = at + ttl + Duration::from_secs(1) + messages;
        let disturbs = |other: &Fault| {
            let matters_until = match other.trouble {
                Trouble::Kill(_) => other.at + KILLED,
                _ => other.until + AFTERMATH,
            };
            let is_it = matches!(&gone.why, Why::Killed(kill) if kill == other);
            other.at <= until && at <= matters_until && !is_it
        };
        let stays = |campaign: &Span| {
            campaign.campaign.key == key
                && campaign.process != gone.process
                && campaign.began + QUEUED_WITHIN <= at
                && campaign.ended > until
        };
        if self.troubles().any(disturbs) || !self.notes.campaigns.iter().any(stays) {
            return None;
        }
        let begins = |term: &&Span| term.campaign.key == key && term.began + LATE > at;
        let next = self.notes.terms.iter().filter(begins).map(|term| term.began).min();
        let Replaced { killed, silent, over, late, .. } = &mut self.replaced;
        let (what, many) = match gone.why {
            Why::Killed(_) => ("was killed", killed),
            Why::Silent => ("was silent for too long", silent),
            Why::Over => ("ended its term", over),
        };
        match next {
            Some(next) if next <= until => {
                *many += 1;
                *late = (*late).max(next.saturating_sub(at + ttl));
                None
            }
            _ => Some(format!(
                "the leader of `{key}` {what} at {} ms and not replaced by {} ms, but at {:?} ms",
                at.as_millis(),
                until.as_millis(),
                next.map(|next| next.as_millis())
            )),
        }
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
