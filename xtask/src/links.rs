//! Checks the links of all Markdown files: each file and each heading that they name exists.
//!
//! A link inside the repository is relative. The READMEs that crates.io shows are the exception:
//! relative links break there, so they name the repository by its URL.

use std::collections::HashSet;
use std::fs;

use crate::child;
use crate::members;
use crate::words::tracked;

/// How links name the files of this repository by URL.
const HOSTED: [&str; 3] = [
    "https://github.com/lockattr/lockattr/blob/main/",
    "https://github.com/lockattr/lockattr/tree/main/",
    "https://raw.githubusercontent.com/lockattr/lockattr/main/",
];

fn read(path: &str) -> Option<String> {
    fs::read_to_string(child::root().join(path)).ok()
}

/// Returns the lines outside of blocks of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// Returns the targets of a page's links and pictures, and of its link definitions.
fn targets(text: &str) -> Vec<String> {
    let lines: Vec<_> = prose(text).collect();
    let definitions = lines.iter().filter_map(|line| line.strip_prefix('[')?.split_once("]: "));
    let mut found: Vec<_> = definitions.map(|(_, target)| target.trim().to_owned()).collect();
    // A code span may contain what looks like a link.
    let text = lines.join("\n");
    let outside_of_spans: Vec<_> = text.split('`').step_by(2).collect();
    let text = outside_of_spans.join("`");
    let ends = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    found.extend(ends.map(str::to_owned));
    found
}

/// Returns the anchors that GitHub gives to a page's headings.
fn anchors(text: &str) -> HashSet<String> {
    let mut found = HashSet::new();
    let is_heading =
        |line: &&str| line.starts_with('#') && line.trim_start_matches('#').starts_with(' ');
    for heading in prose(text).filter(is_heading) {
        let heading = link_text(heading.trim_start_matches('#').trim()).to_lowercase();
        let kept =
            heading.chars().filter(|it| it.is_alphanumeric() || matches!(it, ' ' | '-' | '_'));
        let anchor: String = kept.map(|it| if it == ' ' { '-' } else { it }).collect();
        let repeated = (1..).map(|number| format!("{anchor}-{number}"));
        let mut names = std::iter::once(anchor.clone()).chain(repeated);
        found.extend(names.find(|name| !found.contains(name)));
    }
    found
}

/// Returns a heading without the targets of its links.
fn link_text(heading: &str) -> String {
    let mut parts = heading.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once(')').map_or("", |(_, rest)| rest))
}

/// Resolves `a/b/../c`. Returns nothing if the path leaves the repository.
fn resolved(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns what is wrong with one link, if anything.
fn fault(page: &str, is_published: bool, target: &str, files: &HashSet<String>) -> Option<String> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let hosted = HOSTED.iter().find_map(|prefix| path.strip_prefix(prefix));
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    let file = match hosted {
        Some(_) if !is_published => return Some("write a relative link".to_owned()),
        Some(path) => resolved(path),
        None if path.contains("://") || path.starts_with("mailto:") => return None,
        None if path.is_empty() => Some(page.to_owned()),
        None if is_published => {
            return Some(format!("crates.io shows this page: begin with {}", HOSTED[0]));
        }
        None => resolved(&format!("{folder}/{path}")),
    };
    let Some(file) = file else { return Some("leaves the repository".to_owned()) };
    let is_folder = files.iter().any(|each| each.starts_with(&format!("{file}/")));
    if !is_folder && !files.contains(&file) {
        return Some(format!("{file} is not in the repository"));
    }
    if hosted.is_some() && is_folder != path.starts_with(HOSTED[1]) {
        return Some("write `blob` for a file and `tree` for a folder".to_owned());
    }
    let lacks = |text: String| !anchors(&text).contains(anchor);
    let is_lost = !anchor.is_empty() && file.ends_with(".md") && read(&file).is_none_or(lacks);
    is_lost.then(|| format!("{file} has no heading #{anchor}"))
}

/// Returns whether the path is a file of its own. A link to a file is read under its other name.
fn is_file(path: &str) -> bool {
    fs::symlink_metadata(child::root().join(path)).is_ok_and(|found| found.is_file())
}

/// Red without: any of the files or headings that a page names.
#[test]
fn links_lead_to_files_and_headings_of_the_repository() {
    let files: HashSet<_> = tracked().expect("the files").into_iter().collect();
    let readmes = members::published().into_iter().map(|it| format!("{}/README.md", it.folder));
    let canonical = |path: &String| fs::canonicalize(child::root().join(path)).ok();
    let published: HashSet<_> = readmes.filter_map(|path| canonical(&path)).collect();
    let mut found = Vec::new();
    for page in files.iter().filter(|file| file.ends_with(".md") && is_file(file)) {
        let is_published = canonical(page).is_some_and(|path| published.contains(&path));
        let targets = targets(&read(page).unwrap_or_default());
        let faults = targets.iter().filter_map(|target| {
            Some(format!("{page}: {target}: {}", fault(page, is_published, target, &files)?))
        });
        found.extend(faults);
    }
    found.sort();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Red without: each of the conditions in `fault`.
#[test]
fn a_link_that_leads_nowhere_is_found() {
    let files = ["README.md", "docs/README.md", "docs/guide/README.md"];
    let files: HashSet<_> = files.into_iter().map(str::to_owned).collect();
    let check = |page: &str, is_published: bool, target: &str, is_right: bool| {
        let fault = fault(page, is_published, target, &files);
        assert_eq!(fault.is_none(), is_right, "{page}: {target}: {fault:?}");
    };
    let page = "docs/guide/README.md";
    for right in ["../README.md", "../../README.md#errors", "../guide/", "https://x.example/y"] {
        check(page, false, right, true);
    }
    let hosted = format!("{}README.md", HOSTED[0]);
    for wrong in ["README", "../../../README.md", "../../README.md#no-such", "#no-such", &hosted] {
        check(page, false, wrong, false);
    }
    check("README.md", true, &hosted, true);
    check("README.md", true, "#errors", true);
    check("README.md", true, "docs/README.md", false);
    check("README.md", true, &format!("{}docs", HOSTED[1]), true);
    check("README.md", true, &format!("{}docs", HOSTED[0]), false);
    check("README.md", true, &format!("{}docs/none.md", HOSTED[0]), false);
}

/// Red without: the filter of blocks and spans, and the numbers after repeated headings.
#[test]
fn code_is_not_read_and_repeated_headings_are_numbered() {
    let text =
        "[a](b) `[c](d)` [`e`](f)\n```\n[g](h)\n# i\n```\n[j]: k\n# It's `l`\n## [m](n)\n# m";
    let mut found = targets(text);
    found.sort();
    assert_eq!(found, ["b", "f", "k", "n"]);
    let mut found: Vec<_> = anchors(text).into_iter().collect();
    found.sort();
    assert_eq!(found, ["its-l", "m", "m-1"]);
}
