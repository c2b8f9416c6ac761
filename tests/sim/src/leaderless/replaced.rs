//! Judges how soon a leader is replaced that was killed, was silent or ended its term, while nothing
//! else goes wrong.

use std::time::Duration;

use super::{Judge, LATE, Replaced};
use crate::plan::{Fault, Trouble};
use crate::term_log::Span;

/// How long a fault may matter after its end: a broken connection is detected within 3 seconds, and
/// a request that failed is repeated a second later.
const AFTERMATH: Duration = Duration::from_secs(4);

/// How long a process that was killed may matter to others: its lease, or its place in the queue.
const KILLED: Duration = Duration::from_secs(2);

/// How long before its leader is killed a process must have campaigned to be the next.
const QUEUED_WITHIN: Duration = Duration::from_secs(1);

/// A leader that no longer leads.
pub(super) struct Gone {
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

impl Judge<'_> {
    /// Returns the leaders of this key, when they no longer led.
    pub(super) fn gone(&self, key: &str) -> Vec<Gone> {
        let mut gone = Vec::new();
        // The term of a process that hangs has no end, and the world reports that.
        let ended = |term: &&Span| term.campaign.key == key && term.ended < Duration::MAX;
        for term in self.notes.terms.iter().filter(ended) {
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
    pub(super) fn not_replaced(&mut self, key: &str, gone: &Gone) -> Option<String> {
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
}
