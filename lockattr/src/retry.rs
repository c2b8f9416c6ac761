//! How long to go on asking: pure, no clock of its own.

use std::time::Duration;

use tokio::time::Instant;

/// No pause is longer, whatever was asked for: the clock must not overflow.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How long an acquisition goes on asking.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Retries after the first attempt; `None` for no such bound.
    pub(crate) retry: Option<u32>,
    /// Time from the first attempt; `None` for no such bound.
    pub(crate) wait: Option<Duration>,
    /// Longest pause between attempts.
    pub(crate) delay: Duration,
}

impl Patience {
    /// Asks once.
    pub(crate) fn once(self) -> Self {
        Self { retry: Some(0), wait: None, ..self }
    }

    /// Starts to count: the first attempt is about to be made.
    pub(crate) fn start(self, now: Instant) -> Attempts {
        let deadline = self.wait.and_then(|wait| now.checked_add(wait));
        Attempts { left: self.retry, deadline, delay: self.delay, made: 0, started: now }
    }
}

/// The attempts of one acquisition: visibly bounded, and no pause after the last one.
#[derive(Debug)]
pub(crate) struct Attempts {
    left: Option<u32>,
    deadline: Option<Instant>,
    delay: Duration,
    made: u32,
    started: Instant,
}

impl Attempts {
    /// Counts an attempt.
    pub(crate) fn begin(&mut self) {
        self.made = self.made.saturating_add(1);
    }

    /// Until when to pause before the next attempt, or `None` if this was the last one.
    ///
    /// `random` is in `0..1`: half of every pause is random, so that callers that failed together
    /// do not come back together.
    pub(crate) fn pause(&mut self, now: Instant, random: f64) -> Option<Instant> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(1)?;
        }
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            return None;
        }
        let wake = now + self.delay.min(LONGEST).mul_f64(0.5 + random / 2.0);
        Some(self.deadline.map_or(wake, |deadline| deadline.min(wake)))
    }

    pub(crate) fn made(&self) -> u32 {
        self.made
    }

    pub(crate) fn waited(&self, now: Instant) -> Duration {
        now - self.started
    }

    /// Until when an attempt that starts now may take: the deadline, but never less than `floor`,
    /// or an attempt near the deadline could not be answered at all.
    pub(crate) fn cut(&self, now: Instant, floor: Duration) -> Option<Instant> {
        self.deadline.map(|deadline| deadline.max(now + floor))
    }
}
