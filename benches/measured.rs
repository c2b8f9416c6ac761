//! The results of one peer over its rounds, and how it compares with another.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::fleet::{Counted, Round, Size};
use crate::outcome::Outcome;
use crate::peers::Peer;
use crate::spread::Spread;

pub(crate) struct Measured {
    pub(crate) peer: Peer,
    pub(crate) size: Size,
    /// Acquisitions per second.
    pub(crate) rate: Spread,
    /// Of all rounds together, in nanoseconds.
    pub(crate) waits: Histogram<u64>,
    /// Hand-offs per second.
    pub(crate) hand_offs: Spread,
    /// Commands for each acquisition, and for each hand-off.
    pub(crate) commands: Spread,
    pub(crate) commands_per_hand_off: Spread,
    /// Calls of scripts for each acquisition, and for each hand-off.
    pub(crate) calls: Spread,
    pub(crate) calls_per_hand_off: Spread,
    /// The server's CPU time for each acquisition, in microseconds.
    pub(crate) server: Spread,
    /// The acquisitions of the task with the fewest over those of the task with the most.
    pub(crate) share: Spread,
    pub(crate) body: Duration,
    each: Each,
}

struct Each {
    rates: Vec<f64>,
    hand_off_rates: Vec<f64>,
    server: Vec<f64>,
    server_per_hand_off: Vec<f64>,
}

impl Measured {
    pub(crate) fn of(
        peer: Peer,
        size: Size,
        rounds: &[Round],
        counted: &[Counted],
    ) -> Option<Self> {
        let mut total = Outcome::new(Duration::ZERO);
        for round in rounds {
            total.add(&round.outcome);
        }
        let held: u64 = total.counted.iter().sum();
        let nanos = total.bodies.as_nanos() as u64;
        let each = Each::of(rounds);
        let over = |values: &[f64]| Spread::of(values.iter().copied());
        let counts = |value: &dyn Fn(&Counted) -> f64| Spread::of(counted.iter().map(value));
        Some(Self {
            peer,
            size,
            rate: over(&each.rates)?,
            waits: total.waits,
            hand_offs: over(&each.hand_off_rates)?,
            commands: counts(&|round| per(round.asked.sent, round.acquisitions))?,
            commands_per_hand_off: counts(&|round| per(round.asked.sent, round.hand_offs))?,
            calls: counts(&|round| per(round.asked.called, round.acquisitions))?,
            calls_per_hand_off: counts(&|round| per(round.asked.called, round.hand_offs))?,
            server: over(&each.server)?,
            share: Spread::of(rounds.iter().map(share))?,
            body: Duration::from_nanos(nanos.checked_div(held).unwrap_or_default()),
            each,
        })
    }

    /// Whether the lock passes between callers that compete for it.
    pub(crate) fn is_contended(&self) -> bool {
        self.size.is_contended() && self.peer.is_exclusive()
    }

    /// How much faster than `other`, round by round: neighbouring rounds had the same conditions.
    pub(crate) fn over(&self, other: &Self) -> Spread {
        ratios(&self.each.rates, &other.each.rates)
    }

    /// How much more often the lock changes hands than with `other`.
    pub(crate) fn hand_offs_over(&self, other: &Self) -> Spread {
        ratios(&self.each.hand_off_rates, &other.each.hand_off_rates)
    }

    /// The ratio of the server's CPU time for an acquisition to that of `other`.
    pub(crate) fn server_over(&self, other: &Self) -> Spread {
        ratios(&self.each.server, &other.each.server)
    }

    /// The ratio of the server's CPU time for a hand-off to that for an acquisition of `other`.
    pub(crate) fn hand_off_server_over(&self, other: &Self) -> Spread {
        ratios(&self.each.server_per_hand_off, &other.each.server)
    }

    pub(crate) fn wait(&self, quantile: f64) -> Duration {
        Duration::from_nanos(self.waits.value_at_quantile(quantile))
    }
}

impl Each {
    fn of(rounds: &[Round]) -> Self {
        let of = |value: &dyn Fn(&Round) -> f64| rounds.iter().map(value).collect();
        let micros = |round: &Round| round.server.as_micros() as u64;
        Self {
            rates: of(&rate),
            hand_off_rates: of(&hand_off_rate),
            server: of(&|round| per(micros(round), round.outcome.all)),
            server_per_hand_off: of(&|round| per(micros(round), round.hand_offs)),
        }
    }
}

fn rate(round: &Round) -> f64 {
    let acquired: u64 = round.outcome.counted.iter().sum();
    acquired as f64 / round.outcome.window.as_secs_f64()
}

/// The hand-offs among the acquisitions that count, estimated from their share of all acquisitions.
fn hand_off_rate(round: &Round) -> f64 {
    rate(round) * per(round.hand_offs, round.outcome.all)
}

fn ratios(ours: &[f64], theirs: &[f64]) -> Spread {
    let ratios = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs.max(f64::MIN_POSITIVE));
    Spread::of(ratios).expect("no measurement without a round")
}

fn share(round: &Round) -> f64 {
    let counted = &round.outcome.counted;
    per(counted.iter().copied().min().unwrap_or(0), counted.iter().copied().max().unwrap_or(0))
}

fn per(some: u64, all: u64) -> f64 {
    some as f64 / all.max(1) as f64
}
