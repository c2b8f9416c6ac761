//! The project's own commands, for developers and CI: `cargo xtask help`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a terminal program")]

mod bless;
mod cargo_test;
#[cfg(test)]
mod changelog;
mod child;
mod ci;
mod compile_time;
#[cfg(test)]
mod dependencies;
mod install;
#[cfg(test)]
mod layers;
#[cfg(test)]
mod links;
#[cfg(test)]
mod members;
mod mutants;
mod newest;
#[cfg(test)]
mod packages;
mod recordings;
#[cfg(test)]
mod rust_versions;
mod servers;
mod soak;
mod steps;
mod table;
mod test;
mod words;
#[cfg(test)]
mod workflows;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask test [FILTER…] [OPTION…]
    Runs all tests except those of `long` and `deep`: unit tests, integration tests, compile-fail
    tests, and the examples in the docs. Installs missing servers with apt-get, as root or with a
    `sudo` that needs no password; otherwise prints what to install. FILTERs select tests by parts
    of their names. Everything from the first OPTION on is passed to `cargo test`. Ends with a table
    of how long each step took.
cargo xtask newest
    Runs the tests that start servers again, on each of the newest Redis, Valkey, MySQL and
    PostgreSQL in Debian. Reports those that are not available as NOT RUN.
cargo xtask long
    Runs the integration tests that `test` leaves out: they wait for failovers and outages, or repeat
    something ten thousand times. Tests that choose at random what they do have the seed 0 in `test`,
    and here a random one, which is printed.
cargo xtask deep
    Runs all models in all their states, and many simulated worlds from a random seed, which is printed.
cargo xtask bless
    Accepts the compiler's current messages for wrong programs (tests/ui/fail/*.stderr), and the
    attribute's current expansions. Review the diff before you commit it.
cargo xtask mutants [WORD…]
    Applies each edit in tests/mutants/ to a copy of the code, and checks that its tests fail. With
    WORDs, only the mutants that have one of them in their name, or in that of a test or a file. Nearly
    all share one build. The outputs of their tests are in target/mutants/outputs/.
cargo xtask soak [--minutes N] [--seed S] [--on NAME,…]
    Runs random operations in several processes under random faults, on every topology or on those
    named, for two minutes by default, and checks the recorded histories. A round that fails prints
    the command that repeats it. `cargo xtask soak --help` lists all options.
cargo xtask table
    Runs the tests that start servers, and prints their number for each store and suite.
cargo xtask compile-time
    Measures the CPU time of `cargo check`, `cargo build` and `cargo build --release` of a program of
    300 annotated functions, and of the same functions without the attribute, in turn.
cargo xtask recordings
    Generates the pictures in docs/recordings/: the command `lockattr` in a real terminal.
cargo xtask words
    Searches Markdown files and comments for the phrases in xtask/src/words.txt, and prints what to
    write instead (docs/style.md). xtask/src/words-later.txt lists what is not checked yet.
cargo xtask ci [STEP…]
    Runs everything that CI runs, or only these steps, as .ci/run does.
cargo xtask help
    Prints this text.

LOCKATTR_REDIS_SERVER=PATH   run the tests on this server program only
LOCKATTR_SEED=N              choose at random as `long` or `deep` did with this seed
LOCKATTR_NO_INSTALL=1        install and download nothing; only report what is missing
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (verb, rest) = match words.split_first() {
        Some((verb, rest)) => (verb.as_str(), rest),
        None => ("", &[][..]),
    };
    let outcome = match verb {
        "test" => test::run(rest),
        "newest" if rest.is_empty() => test::newest(),
        "long" if rest.is_empty() => test::long(),
        "deep" if rest.is_empty() => test::deep(),
        "bless" if rest.is_empty() => bless::run(),
        "mutants" => mutants::run(rest),
        "ci" => ci::run(rest),
        "soak" => soak::run(rest),
        "table" if rest.is_empty() => table::run(),
        "words" if rest.is_empty() => words::run(),
        "compile-time" if rest.is_empty() => compile_time::run(),
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
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
