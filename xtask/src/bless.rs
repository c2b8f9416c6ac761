//! `cargo xtask bless`: rewrites the text files that tests compare with.

use crate::child;

pub(crate) fn run() -> Result<(), String> {
    // The features of `cargo xtask test`: others would build all libraries again.
    let ui = ["test", "--workspace", "--all-features", "--test", "ui"];
    let expansions = ["test", "--all-features", "--package", "lockattr-macros"];
    for tests in [&ui[..], &expansions] {
        child::run(child::cargo(tests).env("UPDATE_EXPECT", "1"))?;
    }
    eprintln!("xtask: review the changes: git diff");
    Ok(())
}
