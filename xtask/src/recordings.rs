//! `cargo xtask recordings`: makes the pictures in docs/recordings/, with the tests of their
//! contents.

use crate::{child, servers};

pub(crate) fn run() -> Result<(), String> {
    servers::ensure_all()?;
    let mut tests = child::cargo(&["test", "--package", "lockattr-cli", "--test", "cli"]);
    tests.arg("recordings").env("LOCKATTR_RECORD", "1");
    child::run(&mut tests)
}
