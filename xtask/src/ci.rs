//! `cargo xtask ci`: the same as `.ci/run`, which owns the list of steps.

use std::process::Command;

use crate::child;

pub(crate) fn run(steps: &[String]) -> Result<(), String> {
    child::run(Command::new("bash").arg(".ci/run").args(steps))
}
