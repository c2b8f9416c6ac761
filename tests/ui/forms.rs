//! The forms of the attribute, in each edition, cause no warning, even of Clippy's strictest lints.

use crate::compiler;

/// Checks `forms/forms.rs`, which sets its own lints, as users' crates do.
#[track_caller]
fn check(edition: &str) {
    let mut clippy = compiler::clippy();
    clippy.args(["--extern", compiler::lockattr(), "--edition", edition]);
    clippy.args(["--crate-type=lib", "--crate-name", &format!("forms_{edition}")]);
    // Flags of the environment would choose other lints.
    clippy.env_remove("CLIPPY_ARGS");
    let output = clippy.arg("tests/ui/forms/forms.rs").output().expect("Clippy starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn clippy_has_no_word_about_what_the_attribute_generates_in_2018() {
    check("2018");
}

#[test]
fn clippy_has_no_word_about_what_the_attribute_generates_in_2021() {
    check("2021");
}

#[test]
fn clippy_has_no_word_about_what_the_attribute_generates_in_2024() {
    check("2024");
}
