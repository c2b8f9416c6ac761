//! `cargo xtask ci`: runs `.ci/run`, which has the list of steps.

use std::process::Command;

use crate::child;

pub(crate) fn run(steps: &[String]) -> Result<(), String> {
    child::run(Command::new("bash").arg(".ci/run").args(steps))
}
