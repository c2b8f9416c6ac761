//! Runs the steps of a run, measures them, and collects their failures.

use std::panic::resume_unwind;
use std::thread;
use std::time::{Duration, Instant};

/// The steps done so far, with their durations, and what failed.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    done: Vec<(String, Duration)>,
    failures: Vec<String>,
}

impl Steps {
    /// Runs a step and records its duration. If it fails, the steps after it run all the same.
    #[allow(clippy::disallowed_methods, reason = "the real clock, and no tokio around")]
    pub(crate) fn run(&mut self, name: &str, step: impl FnOnce() -> Result<(), String>) {
        let started = Instant::now();
        let outcome = step();
        self.done.push((name.to_owned(), started.elapsed()));
        self.failures.extend(outcome.err().map(|error| format!("{name}: {error}")));
    }

    /// Runs `these` steps, and `others` beside them.
    pub(crate) fn beside(
        &mut self,
        these: impl FnOnce(&mut Self),
        others: impl FnOnce(&mut Self) + Send,
    ) {
        let others = thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let mut steps = Self::default();
                others(&mut steps);
                steps
            });
            these(self);
            thread.join()
        });
        let others = others.unwrap_or_else(|panic| resume_unwind(panic));
        let named = others.done.into_iter().map(|(name, time)| (format!("beside: {name}"), time));
        self.done.extend(named);
        self.failures.extend(others.failures);
    }

    pub(crate) fn have_passed(&self) -> bool {
        self.failures.is_empty()
    }

    /// Prints how long each step took, and returns the failures.
    pub(crate) fn end(self) -> Result<(), String> {
        eprintln!("xtask: where the time went\n{}", self.table());
        if self.have_passed() { Ok(()) } else { Err(self.failures.join("\n")) }
    }

    /// Returns a line for each step, the longest first.
    fn table(&self) -> String {
        let mut steps: Vec<_> = self.done.iter().collect();
        steps.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        let line =
            |(name, time): &&(String, Duration)| format!("{:>6} s  {name}\n", time.as_secs());
        steps.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::{Duration, Steps};

    /// Red without: the order.
    #[test]
    fn the_longest_step_comes_first() {
        let steps = Steps {
            done: vec![
                ("build".to_owned(), Duration::from_secs(7)),
                ("it".to_owned(), Duration::from_secs(300)),
            ],
            failures: Vec::new(),
        };
        assert_eq!(steps.table(), "   300 s  it\n     7 s  build\n");
    }

    /// Red without: the thread (it hangs), or either list in `beside`.
    #[test]
    fn steps_beside_others_run_at_the_same_time_and_count() {
        let (mut steps, both_run) = (Steps::default(), Barrier::new(2));
        let fails = || {
            both_run.wait();
            Err("failed".to_owned())
        };
        steps.beside(
            |steps| {
                steps.run("it", fails);
                steps.run("cli", || Ok(()));
            },
            |steps| steps.run("models", fails),
        );
        let names: Vec<_> = steps.done.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["it", "cli", "beside: models"]);
        assert_eq!(steps.end(), Err("it: failed\nmodels: failed".to_owned()));
    }
}
