//! The packages of the workspace, as their manifests describe them.

use std::fs;

use crate::child;

/// One package of the workspace.
#[derive(Debug)]
pub(crate) struct Member {
    /// Its folder, relative to the root.
    pub(crate) folder: String,
    pub(crate) manifest: String,
}

impl Member {
    /// Returns whether `cargo publish --workspace` uploads it.
    pub(crate) fn is_published(&self) -> bool {
        !self.section("package").lines().any(|line| line.trim() == "publish = false")
    }

    /// Returns the text between the heading `[name]` and the next heading.
    pub(crate) fn section(&self, name: &str) -> &str {
        let heading = format!("[{name}]\n");
        let is_line = |at: &usize| *at == 0 || self.manifest[..*at].ends_with('\n');
        let mut starts = self.manifest.match_indices(&heading).map(|(at, _)| at).filter(is_line);
        let Some(start) = starts.next() else { return "" };
        let rest = &self.manifest[start + heading.len()..];
        &rest[..rest.find("\n[").unwrap_or(rest.len())]
    }

    /// Returns the names in a section, such as those of the features.
    pub(crate) fn names(&self, section: &str) -> Vec<&str> {
        let is_name = |name: &&str| {
            !name.is_empty()
                && name.chars().all(|letter| letter.is_alphanumeric() || "-_".contains(letter))
        };
        let lines = self.section(section).lines();
        lines
            .filter_map(|line| line.split_once(" = "))
            .map(|(name, _)| name)
            .filter(is_name)
            .collect()
    }

    pub(crate) fn name(&self) -> &str {
        let mut lines = self.section("package").lines();
        let name = lines.find_map(|line| quoted(line.strip_prefix("name = ")?).into_iter().next());
        name.expect("a package has a name")
    }
}

/// Returns the strings of a line, without their quotes.
pub(crate) fn quoted(text: &str) -> Vec<&str> {
    text.split('"').skip(1).step_by(2).collect()
}

/// Returns all packages of the workspace.
pub(crate) fn all() -> Vec<Member> {
    let read = |path: String| {
        fs::read_to_string(child::root().join(&path))
            .unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let root = Member { folder: String::new(), manifest: read("Cargo.toml".to_owned()) };
    let list = root.section("workspace").split("\nmembers = [").nth(1);
    let list = list.and_then(|rest| rest.split(']').next()).expect("the list of members");
    let folders = quoted(list).into_iter().map(str::to_owned);
    folders
        .map(|folder| Member { manifest: read(format!("{folder}/Cargo.toml")), folder })
        .collect()
}

/// Returns the packages that are published.
pub(crate) fn published() -> Vec<Member> {
    all().into_iter().filter(Member::is_published).collect()
}

/// Red without: the search for the start of a line in `section`, and the end of a section.
#[test]
fn a_section_ends_at_the_next_heading() {
    let manifest =
        "[package]\nname = \"a\"\n# [features]\n\n[features]\nx = []\n# y = []\n[lints]\nz = 1\n";
    let member = Member { folder: "a".to_owned(), manifest: manifest.to_owned() };
    assert_eq!(member.name(), "a");
    assert_eq!(member.names("features"), ["x"]);
    assert!(member.is_published());
    let private = manifest.replace("name = \"a\"", "name = \"a\"\npublish = false");
    assert!(!Member { folder: "a".to_owned(), manifest: private }.is_published());
}
