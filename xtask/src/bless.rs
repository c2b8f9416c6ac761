//! `cargo xtask bless`: rewrites the text files that tests compare with.

use crate::child;

pub(crate) fn run() -> Result<(), String> {
    let mut ui = child::cargo(&["test", "--all-features", "--package", "lockattr-ui"]);
    child::run(ui.env("TRYBUILD", "overwrite"))?;
    let mut expansions = child::cargo(&["test", "--all-features", "--package", "lockattr-macros"]);
    child::run(expansions.env("UPDATE_EXPECT", "1"))?;
    eprintln!("xtask: review the changes: git diff");
    Ok(())
}
