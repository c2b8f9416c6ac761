//! `cargo xtask soak`: installs the servers, then runs random faults and workloads (`tests/soak/`).

use std::process::Command;

use crate::{child, servers};

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    servers::ensure_all()?;
    // With the tests' features, or everything would be built again.
    child::run(&mut child::cargo(&[
        "build",
        "--workspace",
        "--all-features",
        "--tests",
        "--bins",
    ]))?;
    let here = std::env::current_exe()
        .map_err(|error| format!("the path of this program is unknown: {error}"))?;
    child::run(Command::new(here.with_file_name("soak")).args(words))
}
