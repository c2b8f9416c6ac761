//! Worlds in which processes campaign to lead.

use std::ops::Range;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::drawn::Odds;
use super::{Fault, Plan, Setup, Topology, Trouble};
use crate::campaign::Campaign;

/// The keys of leaders.
const KEYS: [&str; 2] = ["scheduler", "poller"];

/// How many microseconds calendars are wrong by at most, and how far they jump: less than a lease,
/// less than the hour for which a store of several servers accepts another's calendar, or more.
const WRONG_BY: [i64; 3] = [400_000, 1_800_000_000, 6 * 3_600_000_000];

/// How much goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weather {
    /// As in the other random worlds: most faults overlap others.
    Storm,
    /// Few faults: most are over before the next.
    Showers,
    /// Only kills, and calendars that jump.
    Kills,
    /// Only calendars that jump.
    Jumps,
}

impl Plan {
    /// Draws the world with leaders of this seed, with these servers. Calendars of processes and of
    /// servers are wrong by hours there, and jump.
    #[must_use]
    pub fn leaders(seed: u64, topology: Topology) -> Self {
        let mut dice = StdRng::seed_from_u64(seed ^ 0x6c65_6164_6572);
        let weather = Weather::draw(&mut dice);
        let works_until = ms(dice.random_range(match weather {
            Weather::Storm => 2_000..4_500,
            Weather::Jumps => 3_000..6_000,
            Weather::Showers | Weather::Kills => 4_000..7_000,
        }));
        let keys = if dice.random_bool(0.3) { &KEYS[..] } else { &KEYS[..1] };
        let wrong_by = WRONG_BY[dice.random_range(0..WRONG_BY.len())];
        let wrong_by = -wrong_by..wrong_by;
        let processes = 0..dice.random_range(2..=4);
        let processes = processes.map(|_| Setup::leaders(&mut dice, keys, &wrong_by));
        let processes: Vec<_> = processes.collect();
        let servers = match topology {
            Topology::Alone => 1,
            Topology::Redlock => 5,
        };
        let mut plan = Self {
            seed,
            scene: None,
            topology,
            fast: (0..servers).map(|_| dice.random_range(-8..=8)).collect(),
            latency: ms(dice.random_range(2..=30)),
            response: ms(300),
            service_time: Duration::ZERO,
            works_until,
            bound: Duration::ZERO,
            faults: Vec::new(),
            processes,
        };
        let pause = match weather {
            Weather::Storm => 20..900,
            Weather::Showers => 1_000..4_000,
            Weather::Kills | Weather::Jumps => 100..1_500,
        };
        let odds = Odds { kinds: 10, pause, calendar: wrong_by };
        plan.faults = plan.draw_faults(&mut dice, &odds);
        if matches!(weather, Weather::Kills | Weather::Jumps) {
            plan.faults.retain(|fault| fault.trouble.is_of_a_calendar());
        }
        if weather == Weather::Kills {
            plan.add_kills(&mut dice);
        }
        plan.bound = bound(plan.campaigns().map(|(_, campaign)| campaign.ttl).max());
        if weather == Weather::Storm && dice.random_bool(0.5) {
            // Long enough to show that a leader is found after all of it.
            let calm = plan.faults.iter().map(|fault| fault.until).max();
            plan.works_until = calm.unwrap_or_default() + plan.bound + ms(500);
        }
        plan
    }

    /// Adds kills that are far enough from each other to show what one of them costs.
    fn add_kills(&mut self, dice: &mut StdRng) {
        let mut at = ms(dice.random_range(1_200..2_500));
        while at < self.works_until {
            let until = at + ms(dice.random_range(300..2_000));
            let trouble = Trouble::Kill(dice.random_range(0..self.processes.len()));
            self.faults.push(Fault { at, until, trouble });
            at += ms(dice.random_range(2_100..3_500));
        }
        self.faults.sort_by_key(|fault| fault.at);
    }

    /// Returns the same world, except that all calendars are right.
    #[must_use]
    pub fn with_right_calendars(mut self) -> Self {
        self.faults.retain(|fault| !fault.trouble.is_of_a_calendar());
        self.processes.iter_mut().for_each(|setup| setup.ahead = 0);
        self
    }
}

impl Weather {
    fn draw(dice: &mut StdRng) -> Self {
        match dice.random_range(0..10) {
            0..5 => Self::Storm,
            5..6 => Self::Showers,
            6..8 => Self::Kills,
            _ => Self::Jumps,
        }
    }
}

impl Setup {
    /// A process that campaigns for these keys.
    fn leaders(dice: &mut StdRng, keys: &[&'static str], wrong_by: &Range<i64>) -> Self {
        Self {
            campaigns: keys.iter().map(|key| Campaign::draw(dice, key)).collect(),
            ahead: dice.random_range(wrong_by.clone()),
            shutdown_at_end: dice.random_bool(0.5),
            ..Self::plain()
        }
    }
}

/// How long a key may be without a leader after a fault. The lease of a leader that is gone, or the
/// place of a waiter that is, and a second for messages on their way; then, if a living process has
/// just failed to reach its servers, a second until it asks again.
fn bound(ttl: Option<Duration>) -> Duration {
    ttl.unwrap_or_default().max(ms(1_000)) + ms(1_000) + ms(1_000)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
