//! Tests what the published crates contain, and what docs.rs builds of them.

use std::fs;

use crate::child;
use crate::members::{self, Member, quoted};

/// What every package has: the first four are written by cargo.
const ALWAYS: [&str; 7] = [
    ".cargo_vcs_info.json",
    "Cargo.lock",
    "Cargo.toml",
    "Cargo.toml.orig",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
];

/// What else a package may have: folders, with the endings of their files.
const ALLOWED: [(&str, &[&str]); 2] = [("src/", &["rs", "lua", "sql"]), ("expansions/", &["rs"])];

fn is_allowed(file: &str) -> bool {
    let ending = file.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_in =
        |(folder, endings): &(&str, &[&str])| file.starts_with(folder) && endings.contains(&ending);
    ALWAYS.contains(&file) || ALLOWED.iter().any(is_in)
}

/// Returns the files that `cargo publish` would upload.
fn packaged(name: &str) -> Vec<String> {
    let words = ["package", "--list", "--allow-dirty", "--package", name];
    let output = child::cargo(&words).current_dir(child::root()).output().expect("cargo package");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// Red without: the `include` list of any crate.
#[test]
fn a_published_crate_has_its_sources_readme_and_licences_and_nothing_else() {
    for member in members::published() {
        let files = packaged(member.name());
        let missing = ALWAYS.iter().filter(|file| !files.iter().any(|each| each == *file));
        let missing: Vec<_> = missing.collect();
        assert!(missing.is_empty(), "{} lacks {missing:?}", member.name());
        let others: Vec<_> = files.iter().filter(|file| !is_allowed(file)).collect();
        assert!(others.is_empty(), "{} would publish {others:?}", member.name());
    }
}

/// A link that was checked in as a file holds the path in place of the text.
///
/// Red without: any of the links.
#[test]
fn the_licences_of_a_published_crate_are_those_of_the_project() {
    let read = |path: &str| fs::read_to_string(child::root().join(path)).unwrap_or_default();
    for member in members::published() {
        for file in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let path = format!("{}/{file}", member.folder);
            assert!(read(&path) == read(file), "{path} is not {file}");
        }
    }
}

/// Returns the features that a user may enable by name.
fn public_features(member: &Member) -> Vec<&str> {
    let is_public = |name: &&str| *name != "default" && !name.starts_with("__");
    member.names("features").into_iter().filter(is_public).collect()
}

/// Red without: any name in `[package.metadata.docs.rs]`, or the condition about `__`.
#[test]
fn docs_rs_builds_every_public_feature_and_no_other() {
    for member in members::published() {
        let public = public_features(&member);
        if public.is_empty() {
            continue;
        }
        let metadata = member.section("package.metadata.docs.rs");
        let listed = metadata.split("features = [").nth(1).and_then(|rest| rest.split(']').next());
        assert_eq!(quoted(listed.unwrap_or_default()), public, "{}", member.name());
        assert!(!metadata.contains("all-features"), "{} has hidden features", member.name());
    }
}

/// Red without: the folders or the endings in `is_allowed`.
#[test]
fn a_file_of_another_kind_is_found() {
    for file in ["README.md", "src/lib.rs", "src/engines/redis/lock.lua", "expansions/keys.rs"] {
        assert!(is_allowed(file), "{file}");
    }
    for file in
        ["public-api.txt", "tests/main.rs", "src/notes.md", "src/LICENSE-MIT", "docs/lib.rs"]
    {
        assert!(!is_allowed(file), "{file}");
    }
}
