//! The project's own commands, for developers and CI: `cargo xtask help`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

mod again;
#[cfg(test)]
mod arrows;
mod bless;
mod child;
mod ci;
#[cfg(test)]
mod dependencies;
mod install;
mod mutants;
mod newest;
mod recordings;
mod servers;
mod soak;
mod steps;
mod table;
mod test;
mod words;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask test [FILTER…] [OPTION…]
    Runs all tests but the long ones (see `deep`): those in the crates, the integration tests, the
    compile-fail tests, the examples in the docs. Installs the servers that they need where it may (apt-get, as root or by a `sudo`
    that asks for no password), and otherwise says what to install. FILTERs choose tests by parts of
    their names; from the first OPTION on, all goes to `cargo test` as it is. Ends with a table of
    where the time went.
cargo xtask newest
    Runs the tests that start servers once more on each of the newest Redis, Valkey, MySQL and
    PostgreSQL that Debian has. Reports those that are not available as NOT RUN.
cargo xtask deep
    Runs the long tests: integration tests that wait for failovers and outages or repeat something
    ten thousand times, all models in all their states, and many simulated worlds.
cargo xtask bless
    Accepts what the compiler now says to the wrong programs (tests/ui/fail/*.stderr) and what the
    attribute now expands to. Read the diff before you commit it.
cargo xtask mutants [WORD…]
    Applies each edit in tests/mutants/ to a copy of the code and sees its tests fail; with WORDs,
    only the mutants and tests that have one in their name. Some twenty seconds each.
cargo xtask soak [--minutes N] [--seed S] [--on NAME,…]
    Random faults over random work of several processes, on every topology or those named, for two
    minutes by default; judges what they wrote down. A round that fails prints the command that has
    it again. `cargo xtask soak --help` says what else there is.
cargo xtask table
    Runs the tests that start servers, and prints how many there are for each store, by suite.
cargo xtask recordings
    Makes the pictures in docs/recordings/ anew: the command `lockattr` in a real terminal.
cargo xtask words
    Looks in Markdown and in comments for the phrases of xtask/src/words.txt, and says what to write
    instead (docs/style.md). xtask/src/words-later.txt lists what is not checked yet.
cargo xtask ci [STEP…]
    All that CI runs, or only these steps: the same as .ci/run.
cargo xtask help

LOCKATTR_REDIS_SERVER=PATH   run the tests against that server program, and no other
LOCKATTR_NO_INSTALL=1        install and download nothing, only say what is missing
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (verb, rest) = match words.split_first() {
        Some((verb, rest)) => (verb.as_str(), rest),
        None => ("", &[][..]),
    };
    let done = match verb {
        "test" => test::run(rest),
        "newest" if rest.is_empty() => test::newest(),
        "deep" if rest.is_empty() => test::deep(),
        "bless" if rest.is_empty() => bless::run(),
        "mutants" => mutants::run(rest),
        "ci" => ci::run(rest),
        "soak" => soak::run(rest),
        "table" if rest.is_empty() => table::run(),
        "words" if rest.is_empty() => words::run(),
        "recordings" if rest.is_empty() => recordings::run(),
        "help" | "--help" | "-h" => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
