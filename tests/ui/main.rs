//! Tests that correct uses of the attribute compile, and pins the compiler's messages for wrong
//! ones: one use in each file. `cargo xtask bless` accepts new messages.

use std::process::Command;

mod pass;

#[test]
fn wrong_uses_have_the_expected_messages() {
    trybuild::TestCases::new().compile_fail("fail/*.rs");
}

/// Only what users see counts: the lints are those of a user's crate, in each edition.
#[test]
fn clippy_has_no_word_about_what_the_attribute_generates() {
    let mut clippy = Command::new(env!("CARGO"));
    clippy.arg("clippy").args(["--quiet", "--offline", "--color", "never"]);
    for edition in ["2018", "2021", "2024"] {
        clippy.args(["--package", &format!("lockattr-forms-{edition}")]);
    }
    // Flags of the environment would choose other lints.
    clippy.env_remove("RUSTFLAGS").env_remove("CLIPPY_ARGS");
    let output = clippy.output().expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn every_correct_use_is_compiled() {
    let listed = include_str!("pass.rs");
    for file in std::fs::read_dir("pass").unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let name = name.strip_suffix(".rs").expect("a Rust file");
        assert!(listed.contains(&format!("\nmod {name};\n")), "`mod {name};` is not in pass.rs");
    }
}
