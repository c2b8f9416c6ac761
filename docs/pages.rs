//! Checks the pages: chapters are listed, and their examples are run. `xtask/src/links.rs` checks the links.

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

/// The code blocks of Rust: what stands behind the three ticks, and the code.
fn rust_blocks(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let blocks = text.split("\n```").skip(1).step_by(2);
    blocks.filter_map(|block| block.split_once('\n')).filter(|(kind, _)| kind.starts_with("rust"))
}

#[track_caller]
fn assert_none(faults: &[String]) {
    assert!(faults.is_empty(), "{}", faults.join("\n"));
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
