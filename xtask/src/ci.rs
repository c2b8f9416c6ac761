//! `cargo xtask ci`: runs `.ci/run`, which has the list of steps.

use std::process::Command;

use crate::child;

pub(crate) fn run(steps: &[String]) -> Result<(), String> {
    child::run(Command::new("bash").arg(".ci/run").args(steps))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use crate::child;

    /// Runs `.ci/run` with steps that only print their names, and of which `failing` fails. Returns
    /// whether all passed, and what was printed.
    fn all_but(failing: &str) -> (bool, String) {
        let script = fs::read_to_string(child::root().join(".ci/run")).expect(".ci/run");
        let (steps, runner) = script.split_once("\n# Runs these steps").expect("the runner");
        let names = steps.lines().filter_map(|line| line.strip_prefix("step_")?.split_once("() {"));
        let stub = |(name, _): (&str, &str)| {
            let outcome = name != failing;
            format!("step_{name}() {{ echo ran {name}; {outcome}; echo ended {name}; }}\n")
        };
        let stubs: String = names.map(stub).collect();
        let folder = child::root().join("target/tmp").join(format!("ci-{failing}"));
        fs::create_dir_all(folder.join(".ci")).expect("a folder");
        let copy = folder.join(".ci/run");
        fs::write(&copy, format!("{steps}\n{stubs}# Runs these steps{runner}")).expect("a copy");
        let output = Command::new("sh").args(["-c", "bash \"$0\" 2>&1"]).arg(&copy).output();
        let output = output.expect("a shell");
        (output.status.success(), String::from_utf8(output.stdout).expect("UTF-8"))
    }

    /// Red without: any step in a list.
    #[test]
    fn every_step_runs_and_is_timed() {
        let (passed, output) = all_but("none");
        assert!(passed, "{output}");
        let tests = ["test", "newest", "long", "soak", "deep"];
        for step in ["fmt", "clippy", "doc", "features", "package"].into_iter().chain(tests) {
            let timed = output.lines().any(|line| line.ends_with(&format!(" s  {step}")));
            assert!(timed && output.contains(&format!("ended {step}\n")), "{step}:\n{output}");
        }
    }

    /// Red without: the status of either kind of steps, or `wait`.
    #[test]
    fn a_step_that_fails_does_not_end_those_beside_it() {
        for (failing, beside) in [("newest", "deep"), ("package", "soak")] {
            let (passed, output) = all_but(failing);
            assert!(!passed && output.ends_with(" FAILED, see above\n"), "{output}");
            for part in [&format!("== {failing}: FAILED\n"), &format!("ended {beside}\n")] {
                assert!(output.contains(part), "{part}\n{output}");
            }
        }
    }
}
