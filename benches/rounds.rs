//! The same rounds for all, in turn, so that noise meets all alike; and what they come to.

use std::time::Duration;

use hdrhistogram::Histogram;
use lockattr_tests::RedisServer;

use crate::fleet::{Fleet, Round, Size};
use crate::outcome::Outcome;
use crate::peers::Peer;
use crate::report::Report;

/// At least, however long a round is: fewer have no middle.
const ROUNDS: u32 = 3;

/// The middle of several values, and how far they lie apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// `None` of nothing.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let median = *values.get(values.len() / 2)?;
        Some(Self { median, min: values[0], max: values[values.len() - 1] })
    }
}

/// What was counted once, or exactly.
impl From<f64> for Spread {
    fn from(value: f64) -> Self {
        Self { median: value, min: value, max: value }
    }
}

/// A peer in a row, over all rounds.
pub(crate) struct Measured {
    pub(crate) peer: Peer,
    pub(crate) size: Size,
    /// Acquisitions a second.
    pub(crate) rate: Spread,
    /// The same, of each round.
    rates: Vec<f64>,
    /// Of all rounds together, in nanoseconds.
    pub(crate) waits: Histogram<u64>,
    /// Hand-offs a second.
    pub(crate) hand_offs: Spread,
    /// The same, of each round.
    hand_off_rates: Vec<f64>,
    /// Commands for each acquisition, and for each hand-off.
    pub(crate) commands: Spread,
    pub(crate) commands_per_hand_off: Spread,
    /// Microseconds that the server computes for each acquisition.
    pub(crate) server: Spread,
    /// What the task with the least got, over what the one with the most got.
    pub(crate) share: Spread,
    /// How long the lock was held, on average.
    pub(crate) body: Duration,
}

/// Measures each of `peers` for `time`, in rounds ABBA… of about `round`; who cannot be measured is
/// named.
///
/// Short rounds meet the same noise; long ones are for those who wait long.
pub(crate) async fn compare(
    report: &mut Report,
    server: &RedisServer,
    peers: &[Peer],
    size: Size,
    (time, round): (Duration, Duration),
) -> Vec<Measured> {
    let mut fleets = Vec::new();
    for &peer in peers {
        match Fleet::start(peer, server, size).await {
            Ok(fleet) => fleets.push((fleet, Vec::new())),
            Err(why) => report.not_present(peer, &why),
        }
    }
    let count = (time.div_duration_f64(round) as u32).max(ROUNDS);
    for _ in 0..count {
        // Whoever came last comes first next time, so that nobody always follows the same.
        fleets.reverse();
        let mut going = Vec::new();
        for (mut fleet, mut rounds) in fleets {
            match fleet.go(time / count).await {
                Ok(round) => {
                    rounds.push(round);
                    going.push((fleet, rounds));
                }
                Err(why) => report.not_present(fleet.peer, &why),
            }
        }
        fleets = going;
    }
    fleets.sort_by_key(|(fleet, _)| peers.iter().position(|&peer| peer == fleet.peer));
    let measured =
        fleets.iter().filter_map(|(fleet, rounds)| Measured::of(fleet.peer, size, rounds));
    measured.collect()
}

impl Measured {
    fn of(peer: Peer, size: Size, rounds: &[Round]) -> Option<Self> {
        let mut total = Outcome::new(Duration::ZERO);
        for round in rounds {
            total.add(&round.outcome);
        }
        let held: u64 = total.counted.iter().sum();
        let nanos = total.bodies.as_nanos() as u64;
        let over = |value: &dyn Fn(&Round) -> f64| Spread::of(rounds.iter().map(value));
        let rates: Vec<f64> = rounds.iter().map(rate).collect();
        let hand_off_rates: Vec<f64> = rounds.iter().map(hand_off_rate).collect();
        Some(Self {
            peer,
            size,
            rate: Spread::of(rates.iter().copied())?,
            rates,
            waits: total.waits,
            hand_offs: Spread::of(hand_off_rates.iter().copied())?,
            hand_off_rates,
            commands: over(&|round| per(round.commands, round.outcome.all))?,
            commands_per_hand_off: over(&|round| per(round.commands, round.hand_offs))?,
            server: over(&|round| per(round.server.as_micros() as u64, round.outcome.all))?,
            share: over(&share)?,
            body: Duration::from_nanos(nanos.checked_div(held).unwrap_or_default()),
        })
    }

    /// How much quicker than `other`, round by round: neighbours had the same machine.
    pub(crate) fn over(&self, other: &Self) -> Spread {
        ratios(&self.rates, &other.rates)
    }

    /// How much more often the lock changes hands than with `other`.
    pub(crate) fn hand_offs_over(&self, other: &Self) -> Spread {
        ratios(&self.hand_off_rates, &other.hand_off_rates)
    }

    /// So much of the waits were not longer.
    pub(crate) fn wait(&self, quantile: f64) -> Duration {
        Duration::from_nanos(self.waits.value_at_quantile(quantile))
    }
}

fn rate(round: &Round) -> f64 {
    let acquired: u64 = round.outcome.counted.iter().sum();
    acquired as f64 / round.outcome.window.as_secs_f64()
}

/// Of all that was acquired, as many as of what is counted.
fn hand_off_rate(round: &Round) -> f64 {
    rate(round) * per(round.hand_offs, round.outcome.all)
}

fn ratios(ours: &[f64], theirs: &[f64]) -> Spread {
    let ratios = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs.max(f64::MIN_POSITIVE));
    Spread::of(ratios).expect("nobody is measured without a round")
}

fn share(round: &Round) -> f64 {
    let counted = &round.outcome.counted;
    per(counted.iter().copied().min().unwrap_or(0), counted.iter().copied().max().unwrap_or(0))
}

fn per(some: u64, all: u64) -> f64 {
    some as f64 / all.max(1) as f64
}
