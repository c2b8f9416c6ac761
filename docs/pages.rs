//! What the pages say that can be checked: links lead somewhere, chapters are listed and run, and what the
//! comparison names is there.

use std::fs;
use std::path::{Path, PathBuf};

/// The repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(root().join(path)).ok()
}

/// The Markdown files in a directory and below, as the repository names them.
fn pages_in(directory: &str) -> Vec<String> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(root().join(directory)).expect(directory) {
        let entry = entry.expect(directory);
        let path = format!("{directory}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            pages.extend(pages_in(&path));
        } else if path.ends_with(".md") {
            pages.push(path);
        }
    }
    pages.sort();
    pages
}

/// `a/b/../c` without the detour.
fn tidied(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The targets of the links and pictures of a page that are in the repository: file and heading.
fn links(page: &str, text: &str) -> Vec<(String, String)> {
    let directory = page.rsplit_once('/').map_or("", |(directory, _)| directory);
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let inside = targets.filter_map(|target| {
        let (file, heading) = target.split_once('#').unwrap_or((target, ""));
        let hosted = [
            "https://github.com/lockattr/lockattr/blob/main/",
            "https://github.com/lockattr/lockattr/tree/main/",
            "https://raw.githubusercontent.com/lockattr/lockattr/main/",
        ];
        let file = match hosted.iter().find_map(|hosted| file.strip_prefix(hosted)) {
            Some(file) => tidied(file),
            None if file.contains("://") || file.starts_with("mailto:") => return None,
            None if file.is_empty() => page.to_owned(),
            None => tidied(&format!("{directory}/{file}")),
        };
        Some((file, heading.to_owned()))
    });
    inside.collect()
}

/// A heading as GitHub makes a link of it.
fn slug(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn has_heading(page: &str, heading: &str) -> bool {
    let text = read(page).unwrap_or_default();
    heading.is_empty() || text.lines().any(|line| line.starts_with('#') && slug(line) == heading)
}

/// The code blocks of Rust: what stands behind the three ticks, and the code.
fn rust_blocks(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let blocks = text.split("\n```").skip(1).step_by(2);
    blocks.filter_map(|block| block.split_once('\n')).filter(|(kind, _)| kind.starts_with("rust"))
}

#[track_caller]
fn assert_none(faults: &[String]) {
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Red without: any of the files or headings that a page names.
#[test]
fn links_lead_somewhere() {
    let mut pages = pages_in("docs");
    pages.push("README.md".into());
    let mut faults = Vec::new();
    for page in &pages {
        let text = read(page).expect(page);
        for (file, heading) in links(page, &text) {
            let is_there = root().join(&file).exists();
            if !is_there {
                faults.push(format!("{page}: {file} is not there"));
            }
            if is_there && file.ends_with(".md") && !has_heading(&file, &heading) {
                faults.push(format!("{page}: {file} has no heading #{heading}"));
            }
        }
    }
    assert_none(&faults);
}

/// Red without: its line in `guide/README.md`, or in `examples.rs`.
#[test]
fn each_chapter_is_listed_and_its_examples_are_run() {
    let (contents, run) = (read("docs/guide/README.md"), read("docs/examples.rs"));
    let (contents, run) = (contents.expect("the contents"), run.expect("the list of doc tests"));
    let mut faults = Vec::new();
    for page in pages_in("docs/guide") {
        let name = page.trim_start_matches("docs/guide/");
        let text = read(&page).expect(name);
        if name != "README.md" && !contents.contains(&format!("]({name})")) {
            faults.push(format!("{name} is not in the table of contents"));
        }
        if rust_blocks(&text).next().is_some() && !run.contains(&format!("\"{name}\"")) {
            faults.push(format!("{name} has examples that examples.rs does not run"));
        }
    }
    assert_none(&faults);
}

/// What is not run is another library's code, `<!-- not ours -->`, or stands in a file that is:
/// `<!-- examples/… -->`.
///
/// Red without: the mark over a block that is ignored, or a line of the file.
#[test]
fn what_is_not_run_says_why() {
    let mut faults = Vec::new();
    for page in pages_in("docs/guide") {
        let text = read(&page).expect(&page);
        for (at, fence) in text.match_indices("\n```rust,ignore\n") {
            let (above, below) = (&text[..at], &text[at + fence.len()..]);
            let mark = above.lines().next_back().unwrap_or_default();
            let mark = mark.strip_prefix("<!-- ").and_then(|mark| mark.strip_suffix(" -->"));
            let code = below.split("```").next().unwrap_or_default();
            let is_there = |file| read(file).is_some_and(|file| file.contains(code));
            if mark.is_none_or(|mark| mark != "not ours" && !is_there(mark)) {
                faults.push(format!("{page}: ignored, and {mark:?} does not have it:\n{code}"));
            }
        }
    }
    assert_none(&faults);
}
