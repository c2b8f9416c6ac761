//! `cargo xtask words`: finds phrases that the project's prose avoids, in Markdown and in comments.
//!
//! `words.txt` lists the phrases and what to write instead, `words-later.txt` the paths that are
//! not checked yet.

use std::fs;
use std::process::Command;

use crate::child;

const PHRASES: &str = include_str!("words.txt");
const LATER: &str = include_str!("words-later.txt");

pub(crate) fn run() -> Result<(), String> {
    let report = check_tree()?;
    for Later { path, found } in &report.later {
        match found {
            0 => println!("clean, remove it from xtask/src/words-later.txt: {path}"),
            _ => println!("not checked yet: {path} ({found} phrases)"),
        }
    }
    if report.faults.is_empty() {
        println!("{} files checked", report.checked);
        return Ok(());
    }
    let count = report.faults.len();
    Err(format!("docs/style.md has the reasons:\n{}\n{count} phrases", report.faults.join("\n")))
}

/// The result of the check of all files.
struct Report {
    /// One line for each phrase, with its file, its line and what to write instead.
    faults: Vec<String>,
    later: Vec<Later>,
    checked: usize,
}

/// A path that is not checked yet, and the number of phrases in it.
struct Later {
    path: &'static str,
    found: usize,
}

fn check_tree() -> Result<Report, String> {
    let phrases = read_phrases(PHRASES)?;
    let later = entries(LATER).map(|path| Later { path, found: 0 }).collect();
    let mut report = Report { faults: Vec::new(), later, checked: 0 };
    for file in tracked()? {
        let Some(kind) = Kind::of(&file) else { continue };
        let path = child::root().join(&file);
        // A link is a second name of another file. A deleted file may not be committed yet.
        let is_file = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
        if !is_file {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(|error| format!("{file}: {error}"))?;
        let found = find(&phrases, &text, kind);
        match report.later.iter_mut().find(|later| is_under(&file, later.path)) {
            Some(later) => later.found += found.len(),
            None => {
                report.checked += 1;
                report.faults.extend(found.iter().map(|found| found.message(&file)));
            }
        }
    }
    Ok(report)
}

/// Returns the files that git tracks.
pub(crate) fn tracked() -> Result<Vec<String>, String> {
    let output = Command::new("git").args(["ls-files", "-z"]).current_dir(child::root()).output();
    let output = output.map_err(|error| format!("`git ls-files` could not be started: {error}"))?;
    if !output.status.success() {
        return Err(format!("`git ls-files` failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let names = String::from_utf8_lossy(&output.stdout);
    Ok(names.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

/// Returns whether a file is the path, or is in the folder that the path names.
fn is_under(file: &str, path: &str) -> bool {
    file == path || (path.ends_with('/') && file.starts_with(path))
}

/// Returns the lines of a data file, without comments.
fn entries(data: &str) -> impl Iterator<Item = &str> {
    data.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[derive(Debug)]
struct Phrase<'a> {
    words: Vec<Word<'a>>,
    instead: &'a str,
}

/// One word of a phrase.
#[derive(Debug)]
enum Word<'a> {
    Exactly(&'a str),
    Beginning(&'a str),
}

impl Word<'_> {
    fn matches(&self, token: &str) -> bool {
        match self {
            Self::Exactly(word) => token == *word,
            // `*` alone stands for one word, not for a comma or a full stop.
            Self::Beginning(word) => token.starts_with(word) && token.starts_with(is_of_word),
        }
    }
}

fn read_phrases(data: &str) -> Result<Vec<Phrase<'_>>, String> {
    let read = |line| -> Option<Phrase<'_>> {
        let (words, instead) = str::split_once(line, "=>")?;
        let words = words.split_whitespace().map(|word| match word.strip_suffix('*') {
            Some(beginning) => Word::Beginning(beginning),
            None => Word::Exactly(word),
        });
        Some(Phrase { words: words.collect(), instead: instead.trim() })
    };
    let is_whole = |phrase: &Phrase<'_>| !phrase.words.is_empty() && !phrase.instead.is_empty();
    entries(data)
        .map(|line| {
            let phrase = read(line).filter(is_whole);
            phrase.ok_or_else(|| format!("words.txt: not `pattern => instead`: {line}"))
        })
        .collect()
}

/// The syntax of a file's prose.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Markdown,
    Rust,
    /// Lua and SQL.
    Dashes,
}

impl Kind {
    fn of(file: &str) -> Option<Self> {
        match file.rsplit_once('.')?.1 {
            "md" => Some(Self::Markdown),
            "rs" => Some(Self::Rust),
            "lua" | "sql" => Some(Self::Dashes),
            _ => None,
        }
    }

    /// Returns the prose of a line: in code its comment, without the comment mark.
    fn prose(self, line: &str) -> Option<&str> {
        let mark = match self {
            Self::Markdown => return Some(line),
            Self::Rust => "//",
            Self::Dashes => "--",
        };
        let line = line.trim_start();
        let comment = if line.starts_with(mark) {
            line
        } else {
            // A comment after code, but not inside a string.
            let mut marks = line.match_indices(mark).map(|(at, _)| line.split_at(at));
            let is_code =
                |code: &str| code.ends_with(' ') && code.matches('"').count().is_multiple_of(2);
            marks.find(|(code, _)| is_code(code))?.1
        };
        Some(comment.trim_start_matches(['/', '!', '-']))
    }
}

/// A phrase that was found.
#[derive(Debug, PartialEq)]
struct Found<'a> {
    /// Counted from 1.
    line: usize,
    text: String,
    instead: &'a str,
}

impl Found<'_> {
    fn message(&self, file: &str) -> String {
        format!("{file}:{}: \"{}\": write {}", self.line, self.text, self.instead)
    }
}

fn find<'a>(phrases: &[Phrase<'a>], text: &str, kind: Kind) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    for paragraph in paragraphs(text, kind) {
        let tokens = tokens(&paragraph);
        let mut rest = tokens.as_slice();
        while let Some((line, _)) = rest.first() {
            let is_here = |phrase: &&Phrase<'a>| {
                let mut pairs = phrase.words.iter().zip(rest);
                phrase.words.len() <= rest.len() && pairs.all(|(word, (_, it))| word.matches(it))
            };
            // Only the longest phrase is reported, not those inside it.
            let longest = phrases.iter().filter(is_here).max_by_key(|phrase| phrase.words.len());
            let (here, after) = rest.split_at(longest.map_or(1, |phrase| phrase.words.len()));
            if let Some(Phrase { instead, .. }) = longest {
                let words: Vec<_> = here.iter().map(|(_, token)| token.as_str()).collect();
                found.push(Found { line: *line, text: words.join(" "), instead });
            }
            rest = after;
        }
    }
    found
}

/// Groups lines of prose into paragraphs, because a phrase may span two lines. Blocks of code are
/// left out.
fn paragraphs(text: &str, kind: Kind) -> Vec<Vec<(usize, &str)>> {
    let (mut all, mut current, mut in_code) = (Vec::new(), Vec::new(), false);
    for (line, prose) in (1..).zip(text.lines().map(|line| kind.prose(line))) {
        let fence = prose.is_some_and(|prose| {
            let prose = prose.trim_start();
            prose.starts_with("```") || prose.starts_with("~~~")
        });
        // A block of code in a comment ends with the comment.
        in_code = prose.is_some() && in_code != fence;
        match prose {
            Some(prose) if !in_code && !fence && !prose.trim().is_empty() => {
                current.push((line, prose));
            }
            _ => all.push(std::mem::take(&mut current)),
        }
    }
    all.push(current);
    all
}

/// Returns the words of a paragraph in lower case, with their lines. Any other visible character is
/// a separate token, which ends a phrase; so do code spans and link targets.
fn tokens(paragraph: &[(usize, &str)]) -> Vec<(usize, String)> {
    let mut tokens: Vec<(usize, String)> = Vec::new();
    let (mut in_span, mut in_target) = (false, false);
    for (line, text) in paragraph {
        let mut in_word = false;
        for (at, letter) in text.char_indices() {
            let letter = if letter == '’' { '\'' } else { letter };
            let is_hidden = in_span || in_target;
            match letter {
                '`' if !in_target => in_span = !in_span,
                '(' if !in_span && text[..at].ends_with(']') => in_target = true,
                ')' if in_target => in_target = false,
                _ => {}
            }
            let is_part = is_of_word(letter) && !is_hidden;
            match tokens.last_mut() {
                Some((_, token)) if is_part && in_word => token.extend(letter.to_lowercase()),
                // Emphasis may be inside a phrase.
                _ if letter.is_whitespace() || letter == '*' => {}
                _ if is_hidden => tokens.push((*line, String::from('`'))),
                _ => tokens.push((*line, letter.to_lowercase().collect())),
            }
            in_word = is_part;
        }
        in_target = false;
    }
    tokens
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '\'' | '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::{Kind, check_tree, find, is_under, read_phrases};

    #[track_caller]
    fn check(kind: Kind, text: &str, expected: &[(usize, &str)]) {
        let data = "in line => queued
            stand in * line => wait
            one line => one queue
            hand-over* => hand-off
            hand-over he => it
            he => it";
        let phrases = read_phrases(data).expect("valid data");
        let found = find(&phrases, text, kind);
        let found: Vec<_> = found.iter().map(|found| (found.line, found.text.as_str())).collect();
        assert_eq!(found, expected, "{kind:?}: {text}");
    }

    #[test]
    fn the_tree_has_none_of_the_phrases() {
        let faults = check_tree().expect("the files can be read").faults;
        assert!(faults.is_empty(), "docs/style.md has the reasons:\n{}", faults.join("\n"));
    }

    #[test]
    fn a_phrase_is_found_in_any_case() {
        check(Kind::Markdown, "first\n\nIn Line, he waits", &[(3, "in line"), (3, "he")]);
    }

    #[test]
    fn only_whole_words_are_found() {
        check(Kind::Markdown, "the inline lines, in-line and the head: he_1", &[]);
    }

    #[test]
    fn a_star_stands_for_an_ending_and_for_one_word() {
        check(Kind::Markdown, "hand-overs, hand", &[(1, "hand-overs")]);
        check(Kind::Markdown, "they stand in its line", &[(1, "stand in its line")]);
        check(Kind::Markdown, "they stand in. line", &[]);
    }

    #[test]
    fn a_phrase_may_be_broken_between_two_lines() {
        check(Kind::Markdown, "they are in\nline", &[(1, "in line")]);
        check(Kind::Rust, "/// they are in\n/// line", &[(1, "in line")]);
        check(Kind::Markdown, "they are in\n\nline", &[]);
    }

    #[test]
    fn emphasis_is_a_part_of_a_phrase_and_a_comma_is_not() {
        check(Kind::Markdown, "**in** line", &[(1, "in line")]);
        check(Kind::Markdown, "in, line", &[]);
    }

    #[test]
    fn of_phrases_that_overlap_the_longest_is_reported() {
        check(Kind::Markdown, "hand-over he has", &[(1, "hand-over he")]);
        check(Kind::Markdown, "they stand in one line", &[(1, "stand in one line")]);
    }

    #[test]
    fn code_in_markdown_is_left_out() {
        check(Kind::Markdown, "`in line` and `a\nhe`, in `x` line", &[]);
        check(Kind::Markdown, "```rust\n// he\n```\nhe", &[(4, "he")]);
    }

    #[test]
    fn the_target_of_a_link_is_left_out_and_its_text_is_not() {
        check(Kind::Markdown, "[he](he.md) he", &[(1, "he"), (1, "he")]);
    }

    #[test]
    fn of_rust_only_comments_are_checked() {
        check(Kind::Rust, "let he = 1; // he\nhe();\n//! he", &[(1, "he"), (3, "he")]);
        check(Kind::Rust, "let url = \"redis:// he\"; let he = 2;", &[]);
    }

    #[test]
    fn a_block_of_code_in_a_comment_is_left_out_and_ends_with_it() {
        check(Kind::Rust, "/// ```\n/// he\n/// ```\n/// he", &[(4, "he")]);
        check(Kind::Rust, "/// ```\n/// he\nfn f() {}\n/// he", &[(4, "he")]);
    }

    #[test]
    fn comments_of_lua_and_sql_are_checked() {
        check(Kind::Dashes, "-- he\nlocal he = 1 -- he", &[(1, "he"), (2, "he")]);
    }

    #[test]
    fn a_folder_does_not_mean_a_longer_name() {
        assert!(is_under("cli/src/ls.rs", "cli/"));
        assert!(!is_under("cli-tests/ls.rs", "cli/"));
        assert!(is_under("README.md", "README.md"));
        assert!(!is_under("README.md.bak", "README.md"));
    }

    #[test]
    fn a_line_of_data_without_a_replacement_is_an_error() {
        assert!(read_phrases("# a comment\n\nin line => queued").is_ok());
        assert!(read_phrases("in line").is_err());
        assert!(read_phrases("in line =>").is_err());
    }
}
