//! Checks the form of `CHANGELOG.md`: the headings of Keep a Changelog 1.1.0, and a link for each
//! version.

use std::fs;

use crate::child;

/// The kinds of changes, in the order in which a version lists them.
const KINDS: [&str; 6] = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];

/// Returns the version and the date of `[1.2.3] - 2026-01-31`.
fn release(heading: &str) -> Option<(&str, &str)> {
    let (version, date) = heading.strip_prefix('[')?.split_once("] - ")?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let core = version.split(['-', '+']).next().unwrap_or_default();
    let is_version = core.split('.').count() == 3 && core.split('.').all(is_number);
    let lengths: Vec<_> = date.split('-').map(str::len).collect();
    let is_date = date.split('-').all(is_number) && lengths == [4, 2, 2];
    (is_version && is_date).then_some((version, date))
}

/// Returns what is wrong with the headings of a changelog.
fn faults(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut last_kind = None;
    let (mut versions, mut last_date) = (Vec::new(), "9999-12-31");
    for line in text.lines().filter(|line| line.starts_with("##")) {
        if let Some(kind) = line.strip_prefix("### ") {
            let Some(at) = KINDS.iter().position(|each| *each == kind) else {
                found.push(format!("`{line}`: write one of {}", KINDS.join(", ")));
                continue;
            };
            if last_kind.is_some_and(|last| at <= last) {
                found.push(format!("`{line}`: the order is {}", KINDS.join(", ")));
            }
            last_kind = Some(at);
            continue;
        }
        last_kind = None;
        match line.strip_prefix("## ") {
            Some("[Unreleased]") if versions.is_empty() => versions.push("Unreleased"),
            Some(heading) if release(heading).is_some_and(|(_, date)| date <= last_date) => {
                let (version, date) = release(heading).expect("checked above");
                versions.push(version);
                last_date = date;
            }
            _ => found.push(format!("`{line}`: write `## [VERSION] - YYYY-MM-DD`, newest first")),
        }
    }
    if versions.first() != Some(&"Unreleased") {
        found.push("the first version is not `## [Unreleased]`".to_owned());
    }
    let unlinked =
        versions.iter().filter(|version| !text.contains(&format!("\n[{version}]: https://")));
    found.extend(unlinked.map(|version| format!("no line `[{version}]: https://…` at the end")));
    found
}

/// Failed for `### Renamed`, a heading that this file had.
#[test]
fn the_changelog_has_the_headings_of_keep_a_changelog() {
    let text = fs::read_to_string(child::root().join("CHANGELOG.md")).expect("the changelog");
    let found = faults(&text);
    assert!(found.is_empty(), "CHANGELOG.md:\n{}", found.join("\n"));
}

/// Red without: each of the conditions in `faults` and `release`.
#[test]
fn a_heading_of_another_form_is_found() {
    let check = |body: &str, expected: usize| {
        let links = "\n\n[Unreleased]: https://x\n[0.1.0]: https://x\n[0.2.0]: https://x\n";
        let found = faults(&format!("# Changelog\n\n{body}{links}"));
        assert_eq!(found.len(), expected, "{body}\n{found:?}");
    };
    check("## [Unreleased]\n### Added\n### Fixed", 0);
    check(
        "## [Unreleased]\n## [0.2.0] - 2026-12-01\n### Fixed\n## [0.1.0] - 2026-11-01\n### Added",
        0,
    );
    check("## [Unreleased]\n### Renamed", 1);
    check("## [Unreleased]\n### Fixed\n### Added", 1);
    check("## [Unreleased]\n### Added\n### Added", 1);
    check("## [Unreleased]\n#### Added", 1);
    check("## [Unreleased]\n## 0.1.0", 1);
    check("## [Unreleased]\n## [0.1] - 2026-11-01", 1);
    check("## [Unreleased]\n## [0.1.0] - 1 November", 1);
    check("## [Unreleased]\n## [0.1.0] - 2026-11-01\n## [0.2.0] - 2026-12-01", 1);
    check("## [Unreleased]\n## [0.3.0] - 2026-11-01", 1);
    check("## [0.1.0] - 2026-11-01", 1);
}
