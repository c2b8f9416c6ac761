//! `cargo xtask soak`: the servers first, then random faults over random workloads (`tests/soak/`).

use std::process::Command;

use crate::{child, servers};

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    servers::ensure_all()?;
    // With the features of the tests, or all would be built again after them.
    child::run(&mut child::cargo(&[
        "build",
        "--workspace",
        "--all-features",
        "--tests",
        "--bins",
    ]))?;
    let here =
        std::env::current_exe().map_err(|error| format!("where this program is: {error}"))?;
    child::run(Command::new(here.with_file_name("soak")).args(words))
}
