//! Worlds that are entirely random.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::{Fault, Plan, Setup, Topology, Trouble, scene};
use crate::turn::LONGEST_TTL;

/// Which faults are drawn, and how often.
pub(super) struct Odds {
    /// How many of the kinds, in their order.
    pub(super) kinds: usize,
    /// The milliseconds from one to the next.
    pub(super) pause: Range<u64>,
    /// How many microseconds calendars jump ahead.
    pub(super) calendar: Range<i64>,
}

impl Odds {
    /// Those of random worlds. Servers' calendars are right there.
    const USUAL: Self = Self { kinds: 9, pause: 20..900, calendar: -400_000..400_000 };
}

impl Plan {
    /// Draws the world of this seed with these servers.
    #[must_use]
    pub fn draw(seed: u64, topology: Topology) -> Self {
        let mut dice = StdRng::seed_from_u64(seed);
        let servers = match topology {
            Topology::Alone => 1,
            Topology::Redlock => 5,
        };
        let works_until = Duration::from_millis(dice.random_range(2_000..5_000));
        let processes: Vec<_> =
            (0..dice.random_range(2..=3)).map(|_| Setup::draw(&mut dice)).collect();
        let mut plan = Self {
            seed,
            scene: None,
            topology,
            fast: (0..servers).map(|_| dice.random_range(-8..=8)).collect(),
            latency: Duration::from_millis(dice.random_range(2..=30)),
            response: Duration::from_millis(300),
            service_time: Duration::ZERO,
            works_until,
            bound: scene::bound(LONGEST_TTL),
            faults: Vec::new(),
            processes,
        };
        plan.faults = plan.draw_faults(&mut dice, &Odds::USUAL);
        plan
    }

    /// Draws faults, in their order.
    pub(super) fn draw_faults(&self, dice: &mut StdRng, odds: &Odds) -> Vec<Fault> {
        let (processes, servers) = (self.processes.len(), self.fast.len());
        // The simulated network cannot have two faults of one link or host at a time.
        let mut busy: HashMap<String, Duration> = HashMap::new();
        let mut faults = Vec::new();
        let mut at = Duration::from_millis(dice.random_range(100..600));
        while at < self.works_until {
            let until = at + Duration::from_millis(dice.random_range(30..2_500));
            let process = dice.random_range(0..processes);
            let mut some: Vec<_> = (0..servers).collect();
            some.shuffle(dice);
            some.truncate(dice.random_range(1..=servers));
            let (one, kind) = (some[0], dice.random_range(0..odds.kinds));
            let trouble = match kind {
                0 => Trouble::Partition(process, some.clone()),
                1 => Trouble::PartitionThere(process, some.clone()),
                2 => Trouble::PartitionBack(process, some.clone()),
                3 => Trouble::Hold(process, some.clone()),
                4 => {
                    let slow = Duration::from_millis(dice.random_range(50..800));
                    Trouble::Slow(process, some.clone(), slow)
                }
                5 => Trouble::Kill(process),
                6 => Trouble::PowerOff(one),
                7 => Trouble::Calendar(process, dice.random_range(odds.calendar.clone())),
                8 => Trouble::Pause(process),
                _ => Trouble::ServerCalendar(one, dice.random_range(odds.calendar.clone())),
            };
            let takes: Vec<_> = match kind {
                0..=4 => some.iter().map(|server| format!("{process}-{server}")).collect(),
                5 | 8 => vec![format!("process {process}")],
                6 => vec![format!("server {one}")],
                _ => Vec::new(),
            };
            if takes.iter().all(|what| busy.get(what).is_none_or(|until| *until < at)) {
                // A step later, because otherwise the end of one fault would coincide with the
                // beginning of the next.
                let free = until + Duration::from_millis(20);
                busy.extend(takes.into_iter().map(|what| (what, free)));
                faults.push(Fault { at, until, trouble });
            }
            at += Duration::from_millis(dice.random_range(odds.pause.clone()));
        }
        faults.sort_by_key(|fault| fault.at);
        faults
    }
}

impl Setup {
    fn draw(dice: &mut StdRng) -> Self {
        let linger = if dice.random_bool(0.3) { dice.random_range(20..500) } else { 0 };
        Self {
            tasks: dice.random_range(2..=4),
            parts: Vec::new(),
            campaigns: Vec::new(),
            linger: Duration::from_millis(linger),
            max_handoffs: dice.random_range(0..8),
            max_handoff_time: Duration::from_millis(dice.random_range(1..200)),
            ahead: dice.random_range(-400_000..400_000),
            shutdown_at_end: dice.random_bool(0.5),
        }
    }
}
