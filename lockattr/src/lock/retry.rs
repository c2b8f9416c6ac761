//! How long to go on asking: pure, no clock of its own.

use std::time::Duration;

use tokio::time::Instant;

/// No pause is longer, whatever was asked for: the clock must not overflow.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How long the only question of a call may take that does not wait; most stores give up earlier.
const RESPONSE_TIME: Duration = Duration::from_secs(5);

/// How long an acquisition goes on asking.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitBudget {
    /// Retries after the first attempt; `None` for no such bound.
    pub(crate) retry: Option<u32>,
    /// Time from the first attempt; `None` for no such bound.
    pub(crate) wait: Option<Duration>,
    /// Longest pause between attempts.
    pub(crate) delay: Duration,
}

impl WaitBudget {
    /// Asks once.
    pub(crate) fn once(self) -> Self {
        Self { retry: Some(0), wait: None, ..self }
    }

    /// Whether it asks once and never waits.
    pub(crate) fn is_once(&self) -> bool {
        self.retry == Some(0) || self.wait == Some(Duration::ZERO)
    }

    /// Starts to count: the first attempt is about to be made.
    pub(crate) fn start(self, now: Instant) -> Attempts {
        let deadline = self.wait.and_then(|wait| now.checked_add(wait));
        let Self { retry, delay, .. } = self;
        let (left, most) = (retry, retry.map(|retries| retries.saturating_add(1)));
        Attempts { left, most, deadline, wait_ends: None, delay, made: 0, started: now }
    }
}

/// The attempts of one acquisition: visibly bounded, and no pause after the last one.
#[derive(Debug)]
pub(crate) struct Attempts {
    left: Option<u32>,
    most: Option<u32>,
    deadline: Option<Instant>,
    /// Until when to wait in the queue, once that was asked.
    wait_ends: Option<Instant>,
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
        if [self.deadline, self.wait_ends].into_iter().flatten().any(|ends| now >= ends) {
            return None;
        }
        let wake = now + self.delay.min(LONGEST).mul_f64(0.5 + random / 2.0);
        Some(self.deadline.map_or(wake, |deadline| deadline.min(wake)))
    }

    /// Whether the first attempt is the last.
    pub(crate) fn is_once(&self) -> bool {
        self.left == Some(0) || self.deadline == Some(self.started)
    }

    /// Whether it is worth while to wait in the queue.
    pub(crate) fn can_wait(&self, now: Instant) -> bool {
        !self.is_once() && self.wait_ends.is_none_or(|ends| now < ends)
    }

    /// Until when to wait in the queue: the deadline, or for as long as the retries that are left would
    /// take if each were refused. Standing in the queue asks all the time, and costs nothing.
    pub(crate) fn wait_ends(&mut self, now: Instant, random: f64) -> Instant {
        if let Some(ends) = self.wait_ends {
            return ends;
        }
        let retries = self.left.map(|left| {
            // As many random pauses vary together.
            let pause = 0.75 + (random / 2.0 - 0.25) / f64::from(left.max(1)).sqrt();
            let pause = self.delay.min(LONGEST).mul_f64(pause);
            now + pause.saturating_mul(left).min(LONGEST)
        });
        let ends = retries.into_iter().chain(self.deadline).min().unwrap_or(now + LONGEST);
        *self.wait_ends.insert(ends)
    }

    /// When a waiter in the queue asks again if it gets no notification for `soon`; `None` if its
    /// wait budget is spent.
    pub(crate) fn recheck_at(
        &mut self,
        now: Instant,
        soon: Duration,
        random: f64,
    ) -> Option<Instant> {
        let ends = self.wait_ends(now, random);
        (now < ends).then(|| ends.min(now + soon))
    }

    /// How often it was asked: as often as `retry` allows, where that was stood through in the queue.
    pub(crate) fn made(&self, now: Instant) -> u32 {
        let waited_it_out =
            self.wait_ends.is_some_and(|ends| ends <= now && self.deadline != Some(ends));
        match self.most {
            Some(most) if waited_it_out => most,
            Some(most) => self.made.min(most),
            None => self.made,
        }
        // One that waited behind another caller of its process asked through that one.
        .max(1)
    }

    pub(crate) fn waited(&self, now: Instant) -> Duration {
        now - self.started
    }

    /// Until when an attempt that starts now may take: the deadline, but never less than `floor`,
    /// or an attempt near the deadline could not be answered at all.
    /// A call with `wait` zero asks once, and leaves the store the time that any answer may take.
    pub(crate) fn response_deadline(&self, now: Instant, floor: Duration) -> Option<Instant> {
        self.deadline.map(|deadline| match deadline > self.started {
            true => deadline.max(now + floor),
            false => now + RESPONSE_TIME,
        })
    }
}
