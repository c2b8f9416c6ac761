//! Measures the steps of a run and prints their durations, longest first.

use std::time::{Duration, Instant};

/// The steps done so far, with their durations.
#[derive(Debug, Default)]
pub(crate) struct Steps(Vec<(String, Duration)>);

impl Steps {
    /// Runs a step and records its duration.
    #[allow(clippy::disallowed_methods, reason = "the real clock, and no tokio around")]
    pub(crate) fn time<T>(&mut self, name: &str, step: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let output = step();
        self.0.push((name.to_owned(), started.elapsed()));
        output
    }

    /// Returns a line for each step.
    pub(crate) fn table(&self) -> String {
        let mut steps: Vec<_> = self.0.iter().collect();
        steps.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        let line =
            |(name, time): &&(String, Duration)| format!("{:>6} s  {name}\n", time.as_secs());
        steps.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Steps};

    /// Red without: the order.
    #[test]
    fn the_longest_step_comes_first() {
        let steps = Steps(vec![
            ("build".to_owned(), Duration::from_secs(7)),
            ("it".to_owned(), Duration::from_secs(300)),
        ]);
        assert_eq!(steps.table(), "   300 s  it\n     7 s  build\n");
    }
}
