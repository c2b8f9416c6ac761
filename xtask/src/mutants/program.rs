//! The programs of the tests, and which of them has which test.

use std::collections::BTreeMap;

/// A program of tests: what the names of its tests begin with, its package's folder and name, and
/// cargo's arguments.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Program {
    pub(crate) prefix: &'static str,
    pub(crate) folder: &'static str,
    pub(crate) package: &'static str,
    pub(crate) target: &'static [&'static str],
}

impl Program {
    /// Returns what the name of its file begins with.
    pub(crate) fn name(&self) -> String {
        match self.target {
            ["--test", name] => (*name).to_owned(),
            _ => self.package.replace('-', "_"),
        }
    }
}

/// `it::timing::…` is a test of the program `it`, `lib::hold::…` of the runtime, `macros::tests::…`
/// of the attribute, `cli::run::…` of the command, and `sim::leaders::…` of the simulation's program
/// `leaders`; a `sim::…` without a program is a scene.
const ALL: [Program; 6] = [
    program("sim::leaders::", "tests/sim", "lockattr-sim", &["--test", "leaders"]),
    program("sim::", "tests/sim", "lockattr-sim", &["--test", "scenes"]),
    IT,
    program("lib::", "lockattr", "lockattr", &["--lib"]),
    program("macros::", "lockattr-macros", "lockattr-macros", &["--lib"]),
    program("cli::", "lockattr-cli", "lockattr-cli", &["--test", "cli"]),
];

const IT: Program = program("it::", "tests", "lockattr-tests", &["--test", "it"]);

/// The part of `it` that starts no server. It is built in a fraction of the time.
const CORE: Program = program("it::", "tests", "lockattr-tests", &["--test", "core"]);

const fn program(
    prefix: &'static str,
    folder: &'static str,
    package: &'static str,
    target: &'static [&'static str],
) -> Program {
    Program { prefix, folder, package, target }
}

/// Tests by their programs, each with the name that it has there.
pub(crate) type Grouped<'a> = BTreeMap<&'static Program, Vec<&'a str>>;

/// Returns the programs that have these tests.
pub(crate) fn grouped<'a>(
    tests: impl IntoIterator<Item = &'a String>,
) -> Result<Grouped<'a>, String> {
    let mut grouped = Grouped::new();
    for test in tests {
        let found = ALL.iter().find_map(|this| Some((this, test.strip_prefix(this.prefix)?)));
        let (program, name) = found.ok_or_else(|| {
            let prefixes = ALL.each_ref().map(|this| format!("`{}`", this.prefix));
            format!("`{test}` must begin with one of {}", prefixes.join(", "))
        })?;
        grouped.entry(program).or_default().push(name);
    }
    Ok(grouped)
}

/// Lets `core` run what it can. Its modules are in this file.
pub(crate) fn prefer_core(grouped: &mut Grouped<'_>, core: &str) {
    let is_core = |test: &&str| {
        let module = test.split_once("::").map(|(module, _)| format!("mod {module};"));
        module.is_some_and(|module| core.lines().any(|line| line == module))
    };
    if grouped.get(&IT).is_some_and(|names| names.iter().all(is_core)) {
        let names = grouped.remove(&IT).expect("it was just found");
        grouped.insert(&CORE, names);
    }
}

#[cfg(test)]
mod tests {
    use super::{Program, grouped, prefer_core};

    #[test]
    fn core_runs_what_it_has() {
        let named = |tests: &[&str]| {
            let tests: Vec<_> = tests.iter().map(|test| (*test).to_owned()).collect();
            let mut grouped = grouped(&tests).unwrap();
            prefer_core(&mut grouped, "mod key;\nmod timing;\n");
            grouped.into_keys().map(Program::name).collect::<Vec<_>>()
        };
        assert_eq!(named(&["it::key::a", "it::timing::b"]), ["core"]);
        assert_eq!(named(&["it::key::a", "it::redis::b"]), ["it"]);
        assert_eq!(named(&["sim::leaders::a", "sim::b"]), ["scenes", "leaders"]);
        assert_eq!(named(&["lib::a", "macros::b"]), ["lockattr", "lockattr_macros"]);
    }
}
