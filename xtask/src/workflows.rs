//! Checks that the hosted workflows run steps of `.ci/run`, and files, that exist.

use std::fs;

use crate::child;

/// Returns the names of the steps that `.ci/run` defines.
fn defined(script: &str) -> Vec<&str> {
    let names = script.lines().filter_map(|line| line.strip_prefix("step_")?.split_once("() {"));
    names.map(|(name, _)| name).collect()
}

/// Returns the values of a matrix, `name: [a, b]`.
fn matrix<'a>(workflow: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!("{name}: [");
    let lists = workflow.lines().filter_map(|line| line.trim().strip_prefix(&start));
    let values = lists.flat_map(|list| list.trim_end_matches(']').split(','));
    values.map(str::trim).collect()
}

/// Returns the steps that a workflow runs.
fn used(workflow: &str) -> Vec<&str> {
    let commands = workflow.lines().filter_map(|line| line.split_once("run: .ci/run "));
    let steps = commands.flat_map(|(_, words)| {
        match words.trim().strip_prefix("${{ matrix.").and_then(|rest| rest.strip_suffix(" }}")) {
            Some(name) => matrix(workflow, name),
            None => words.split_whitespace().collect(),
        }
    });
    steps.collect()
}

/// Returns what is wrong with a workflow.
fn faults(workflow: &str, script: &str) -> Vec<String> {
    let (used, defined) = (used(workflow), defined(script));
    let unknown = used.iter().filter(|step| !defined.contains(step));
    let mut found: Vec<_> = unknown.map(|step| format!("`.ci/run {step}`: no such step")).collect();
    if used.is_empty() {
        found.push("runs no step of `.ci/run`".to_owned());
    }
    let called = workflow.lines().filter_map(|line| line.trim().strip_prefix("uses: ./"));
    let missing = called.filter(|path| !child::root().join(path).exists());
    found.extend(missing.map(|path| format!("`uses: ./{path}`: no such file")));
    found
}

/// Red without: any step that a workflow names.
#[test]
fn workflows_run_steps_that_exist() {
    let folder = child::root().join(".github/workflows");
    let script = fs::read_to_string(child::root().join(".ci/run")).expect(".ci/run");
    let entries = fs::read_dir(&folder).expect("the workflows").flatten();
    let files: Vec<_> = entries.map(|entry| entry.path()).collect();
    assert!(!files.is_empty());
    for file in files {
        let workflow = fs::read_to_string(&file).expect("a workflow");
        let found = faults(&workflow, &script);
        assert!(found.is_empty(), "{}:\n{}", file.display(), found.join("\n"));
    }
}

/// Red without: the search for unknown steps, for those of a matrix, and for files.
#[test]
fn a_step_that_does_not_exist_is_found() {
    let script = "step_fmt() {\n}\nstep_doc() {\n}\n";
    let check = |workflow: &str, expected: usize| {
        let found = faults(workflow, script);
        assert_eq!(found.len(), expected, "{workflow}\n{found:?}");
    };
    check("- run: .ci/run fmt doc", 0);
    check("- run: .ci/run fmt test", 1);
    check("  step: [fmt, doc]\n- run: .ci/run ${{ matrix.step }}", 0);
    check("  step: [fmt, tests]\n- run: .ci/run ${{ matrix.step }}", 1);
    check("- run: cargo test", 1);
    check("- run: .ci/run fmt\n  uses: ./.github/workflows/none.yml", 1);
}
