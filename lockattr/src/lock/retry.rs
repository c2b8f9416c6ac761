//! How long an acquisition keeps trying: pure, without a clock of its own.

use std::time::Duration;

use tokio::time::Instant;

use super::century::{CENTURY, at_most_a_century};

/// How long the answer to the only request of a call without a wait may take once that is sent, and how long a busy
/// process may add; most stores give up earlier.
const RESPONSE_TIME: Duration = Duration::from_secs(5);

/// How long an acquisition keeps trying.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitBudget {
    /// Retries after the first attempt; `None` for no such bound.
    pub(crate) retry: Option<u32>,
    /// Time from the first attempt; `None` for no such bound.
    pub(crate) wait: Option<Duration>,
    pub(crate) delay: Duration,
}

impl WaitBudget {
    pub(crate) fn once(self) -> Self {
        Self { retry: Some(0), wait: None, ..self }
    }

    pub(crate) fn is_once(&self) -> bool {
        self.retry == Some(0) || self.wait == Some(Duration::ZERO)
    }

    /// Starts the clock, just before the first attempt.
    pub(crate) fn start(self, now: Instant) -> Attempts {
        let deadline = self.wait.map(|wait| now + wait);
        let Self { retry, delay, .. } = self;
        let (retries_left, max_attempts) = (retry, retry.map(|retries| retries.saturating_add(1)));
        Attempts {
            retries_left,
            max_attempts,
            deadline,
            wait_deadline: None,
            delay,
            made: 0,
            started: now,
        }
    }
}

/// The attempts of one acquisition. They are bounded, and no pause follows the last one.
#[derive(Debug)]
pub(crate) struct Attempts {
    retries_left: Option<u32>,
    max_attempts: Option<u32>,
    deadline: Option<Instant>,
    /// How long to stay queued, once computed.
    wait_deadline: Option<Instant>,
    delay: Duration,
    made: u32,
    started: Instant,
}

impl Attempts {
    pub(crate) fn begin(&mut self) {
        self.made = self.made.saturating_add(1);
    }

    /// The end of the pause before the next attempt, or `None` if this was the last one.
    ///
    /// `random` is in `0..1`. Half of every pause is random, so that callers that failed together
    /// do not return together.
    pub(crate) fn pause(&mut self, now: Instant, random: f64) -> Option<Instant> {
        if let Some(retries_left) = &mut self.retries_left {
            *retries_left = retries_left.checked_sub(1)?;
        }
        if [self.deadline, self.wait_deadline].into_iter().flatten().any(|ends| now >= ends) {
            return None;
        }
        let wake = now + self.delay.mul_f64(0.5 + random / 2.0);
        Some(self.deadline.map_or(wake, |deadline| deadline.min(wake)))
    }

    pub(crate) fn is_once(&self) -> bool {
        self.retries_left == Some(0) || self.deadline == Some(self.started)
    }

    pub(crate) fn can_wait(&self, now: Instant) -> bool {
        !self.is_once() && self.wait_deadline.is_none_or(|ends| now < ends)
    }

    /// How long to stay queued: until the deadline, or for as long as the remaining retries would
    /// take if each failed.
    pub(crate) fn wait_deadline(&mut self, now: Instant, random: f64) -> Instant {
        if let Some(ends) = self.wait_deadline {
            return ends;
        }
        let retries = self.retries_left.map(|retries_left| {
            // The sum of this many random pauses varies less.
            let pause = 0.75 + (random / 2.0 - 0.25) / f64::from(retries_left.max(1)).sqrt();
            let pause = self.delay.mul_f64(pause);
            now + at_most_a_century(pause.saturating_mul(retries_left))
        });
        let ends = retries.into_iter().chain(self.deadline).min().unwrap_or(now + CENTURY);
        *self.wait_deadline.insert(ends)
    }

    /// When a queued claim retries if it receives no notification within `soon`; `None` if its
    /// wait budget is used up.
    pub(crate) fn recheck_at(
        &mut self,
        now: Instant,
        soon: Duration,
        random: f64,
    ) -> Option<Instant> {
        let ends = self.wait_deadline(now, random);
        (now < ends).then(|| ends.min(now + at_most_a_century(soon)))
    }

    /// The number of attempts to report: all that `retry` allows, if the claim stayed queued for
    /// that long.
    pub(crate) fn made(&self, now: Instant) -> u32 {
        let waited_it_out =
            self.wait_deadline.is_some_and(|ends| ends <= now && self.deadline != Some(ends));
        match self.max_attempts {
            Some(max_attempts) if waited_it_out => max_attempts,
            Some(max_attempts) => self.made.min(max_attempts),
            None => self.made,
        }
        // A call that waited behind another caller of its process had an attempt through that one.
        .max(1)
    }

    pub(crate) fn waited(&self, now: Instant) -> Duration {
        now - self.started
    }

    /// How long a request that leaves this process at `left` may take: until the deadline, but at
    /// least `floor`, or a request near the deadline could not be answered. That ends the call in
    /// any case. A call with `wait` zero makes one attempt, and allows the store the time that any
    /// answer may take. It ends after twice that time in any case.
    pub(crate) fn response_deadline(&self, left: Instant, floor: Duration) -> Option<Instant> {
        self.deadline.map(|deadline| match deadline > self.started {
            true => deadline.max(left + floor).min(deadline + floor),
            false => (left + RESPONSE_TIME).min(self.started + 2 * RESPONSE_TIME),
        })
    }
}
