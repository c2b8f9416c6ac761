//! Checks the promise about Rust versions: a release supports the three latest stable ones.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

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

/// Returns name and version of each crate that the published crates need, with every feature but
/// `sqlx`, whose driver needs a newer Rust.
fn needed() -> BTreeSet<String> {
    let mut needed = BTreeSet::new();
    for member in members::published() {
        let words = ["tree", "--edges", "normal,build", "--prefix", "none", "--target", "all"];
        let features = member.names("features").into_iter().filter(|name| *name != "sqlx");
        let features = features.collect::<Vec<_>>().join(",");
        let mut tree = child::cargo(&words);
        tree.args(["--package", member.name(), "--features", &features]);
        let output = tree.current_dir(child::root()).output().expect("cargo tree");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout);
        needed.extend(text.lines().filter_map(|line| {
            let (name, rest) = line.split_once(" v")?;
            Some(format!("{name} {}", rest.split(' ').next()?))
        }));
    }
    needed
}

/// Where no older Rust can be installed, this and Clippy's `incompatible_msrv` are what is checked.
///
/// Red without: the filter for `sqlx`.
#[test]
fn no_dependency_needs_a_newer_version() {
    let mut metadata = child::cargo(&["metadata", "--format-version", "1", "--all-features"]);
    let output = metadata.current_dir(child::root()).output().expect("cargo metadata");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata's JSON");
    let (oldest, needed) = (minor(&oldest()), needed());
    let packages = metadata["packages"].as_array().expect("a list of packages").iter();
    let (mut found, mut newer) = (0, Vec::new());
    for package in packages {
        let field = |name: &str| package[name].as_str().unwrap_or_default();
        let name = format!("{} {}", field("name"), field("version"));
        let rust = field("rust_version");
        if needed.contains(&name) {
            found += 1;
            if !rust.is_empty() && minor(rust) > oldest {
                newer.push(format!("{name} needs Rust {rust}"));
            }
        }
    }
    assert_eq!(found, needed.len(), "a crate of `cargo tree` is not in `cargo metadata`");
    assert!(newer.is_empty(), "{newer:?}");
}
