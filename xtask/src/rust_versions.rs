//! Checks the promise about Rust versions: a release supports the three latest stable ones.

use std::fs;

use crate::child;
use crate::members::{self, quoted};

fn read(path: &str) -> String {
    fs::read_to_string(child::root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the value of the first line `name = "value"`.
fn value(text: &str, name: &str) -> String {
    let mut lines = text.lines();
    let value = lines.find_map(|line| {
        let rest = line.strip_prefix(name)?.strip_prefix(" = ")?;
        quoted(rest).first().map(|value| (*value).to_owned())
    });
    value.unwrap_or_else(|| panic!("no line `{name} = \"…\"`"))
}

fn oldest() -> String {
    value(&read("Cargo.toml"), "rust-version")
}

/// Returns the 88 of `1.88` and of `1.88.0`.
fn minor(version: &str) -> u32 {
    let number = version.split('.').nth(1).and_then(|minor| minor.parse().ok());
    number.unwrap_or_else(|| panic!("not a version: {version}"))
}

/// The pinned compiler is the latest that we have seen.
///
/// Red without: the 2.
#[test]
fn the_three_latest_versions_of_rust_are_supported() {
    let pinned = value(&read("rust-toolchain.toml"), "channel");
    assert!(minor(&oldest()) + 2 <= minor(&pinned), "{} is too new for {pinned}", oldest());
}

/// Red without: `rust-version.workspace = true` in any published crate.
#[test]
fn the_published_crates_share_the_oldest_version() {
    for member in members::published() {
        let package = member.section("package");
        assert!(package.contains("\nrust-version.workspace = true\n"), "{}", member.name());
    }
}

/// Red without: the version in any of the pages.
#[test]
fn the_pages_name_the_oldest_version() {
    let oldest = oldest();
    for (page, sentence) in [
        ("README.md", format!("badge/rust-{oldest}%2B-")),
        ("README.md", format!("Rust {oldest} or later")),
        ("docs/guide/16-upgrading.md", format!("minimum supported Rust version ({oldest} now)")),
    ] {
        assert!(read(page).contains(&sentence), "{page} does not say: {sentence}");
    }
}
