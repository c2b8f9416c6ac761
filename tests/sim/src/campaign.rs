//! A campaign: the key and the options under which a process leads, and how its terms go.
//!
//! Terms are drawn at random, without side effects.

use std::time::Duration;

use lockattr::LockOptions;
use rand::RngExt;
use rand::rngs::StdRng;

/// What a process campaigns for, in each of its lives.
#[derive(Clone, Debug)]
pub(crate) struct Campaign {
    /// The key.
    pub(crate) key: &'static str,
    /// `ttl`.
    pub(crate) ttl: Duration,
    /// `max_hold`.
    pub(crate) max_hold: Option<Duration>,
    /// `progress_within`.
    pub(crate) progress_within: Option<Duration>,
    /// How often a leader writes.
    pub(crate) every: Duration,
    /// Whether a task of its own writes, which the body only owns. After a pause, it may write
    /// before the body is dropped.
    pub(crate) writes_beside: bool,
}

/// How a term goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// How it ends, unless something else ends it before.
    pub(crate) end: End,
    /// After how long.
    pub(crate) after: Duration,
}

/// How a term ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Not by itself.
    Never,
    /// The body writes, and reports no progress.
    FallsSilent,
    /// The body awaits something that never comes.
    Hangs,
    /// The leader resigns, and its body goes on until it is dropped.
    Resigns,
    /// The body returns.
    Returns,
    /// The body returns an error.
    Fails,
}

impl Campaign {
    /// Draws the campaign of a process.
    pub(crate) fn draw(dice: &mut StdRng, key: &'static str) -> Self {
        let ttl = [150, 300, 600, 1_500][dice.random_range(0..4)];
        let max_hold = dice.random_bool(0.2).then(|| ms(ttl * dice.random_range(2..6)));
        let within = dice.random_bool(0.5).then(|| ms(ttl + dice.random_range(0..900)));
        let every = ms(dice.random_range(5..60));
        let writes_beside = dice.random_bool(0.5);
        Self { key, ttl: ms(ttl), max_hold, progress_within: within, every, writes_beside }
    }

    /// Returns its options.
    pub(crate) fn options(&self) -> LockOptions {
        let mut options = LockOptions::new().ttl(self.ttl);
        if let Some(max_hold) = self.max_hold {
            options = options.max_hold(max_hold);
        }
        if let Some(within) = self.progress_within {
            options = options.progress_within(within);
        }
        options
    }

    /// Draws a term.
    pub(crate) fn draw_term(&self, dice: &mut StdRng) -> Manner {
        let end = match dice.random_range(0..20) {
            // Without `progress_within`, such a leader leads as long as its process lives.
            0..3 if self.progress_within.is_some() => End::FallsSilent,
            3..6 if self.progress_within.is_some() => End::Hangs,
            0..13 => End::Resigns,
            13..15 => End::Returns,
            15..17 => End::Fails,
            _ => End::Never,
        };
        Manner { end, after: ms(dice.random_range(0..1_200)) }
    }

    /// Draws for how long a write is on its way to the resource; `None` if it is there at once.
    /// Some arrive when the lease of their term has ended.
    pub(crate) fn draw_delay(&self, dice: &mut StdRng) -> Option<Duration> {
        match dice.random_range(0..10) {
            0..5 => None,
            5..8 => Some(ms(dice.random_range(1..60))),
            _ => Some(self.ttl.mul_f64(dice.random_range(0.0..2.5))),
        }
    }
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
