//! Test programs side by side: those that wait for servers beside those that compute.
//!
//! Two runs of cargo share one build, and hold its lock only while they build.

use std::process::Command;
use std::thread;

use crate::again;
use crate::steps::{Steps, timed};

/// Which tests were red once, and green alone.
type Outcome = Result<Vec<String>, String>;

/// One run of test programs.
pub(crate) struct Lane {
    name: &'static str,
    /// What it runs.
    tests: Command,
}

impl Lane {
    pub(crate) fn new(name: &'static str, tests: Command) -> Self {
        Self { name, tests }
    }
}

/// Runs the lanes side by side, and takes note of how long each took. `alone` starts the command that runs a red test again. The
/// output of the first lane is shown at once, that of each other one when it has ended.
pub(crate) fn run(
    lanes: Vec<Lane>,
    alone: impl Fn() -> Command + Sync,
    steps: &mut Steps,
) -> Outcome {
    let outcomes: Vec<_> = thread::scope(|scope| {
        let threads = lanes.into_iter().enumerate().map(|(nth, mut lane)| {
            let alone = &alone;
            scope.spawn(move || {
                let ((outcome, said), took) = timed(|| match nth {
                    0 => (again::run(&mut lane.tests, alone), Vec::new()),
                    _ => again::quietly(&mut lane.tests, alone),
                });
                (lane.name, outcome, said, took)
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|lane| lane.join().expect("a lane does not panic")).collect()
    });
    let (mut rare, mut failures) = (Vec::new(), Vec::new());
    for (name, outcome, said, took) in outcomes {
        print!("{}", String::from_utf8_lossy(&said));
        steps.took(name, took);
        match outcome {
            Ok(red_once) => rare.extend(red_once),
            Err(failure) => failures.push(format!("{name}: {failure}")),
        }
    }
    if failures.is_empty() { Ok(rare) } else { Err(failures.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::{Lane, Steps, run};
    use std::process::Command;

    fn says(what: &str, status: i32) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("printf '%s' \"{what}\"; exit {status}"), "sh"]);
        command
    }

    /// Red without: the failures of a lane that is not the first; its name in the table.
    #[test]
    fn a_failure_of_any_lane_is_one_and_each_is_timed() {
        let mut steps = Steps::default();
        let lanes = vec![Lane::new("one", says("", 0)), Lane::new("two", says("", 1))];
        let failure = run(lanes, || says("", 1), &mut steps).unwrap_err();
        assert!(failure.starts_with("two: "), "{failure}");
        let table = steps.table();
        assert!(table.contains("one") && table.contains("two"), "{table}");
    }
}
