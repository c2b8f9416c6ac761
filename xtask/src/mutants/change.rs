//! Where a mutant changes a file.

use std::ops::Range;

/// The text in a range of a file becomes another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) range: Range<usize>,
    pub(crate) text: String,
}

/// Returns what these edits, each a text and what replaces it, change in the file. `None` if a text is
/// not in it once: an edit may be one of what another edit has left.
pub(crate) fn changes<'a>(
    file: &str,
    edits: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Option<Vec<Change>> {
    let mut changes = Vec::new();
    for (with, without) in edits {
        let mut places = file.match_indices(with);
        let (Some((at, _)), None) = (places.next(), places.next()) else { return None };
        changes.extend(shortest(at, with, without));
    }
    changes.sort_by_key(|change| change.range.start);
    let overlap = |pair: &[Change]| pair[0].range.end > pair[1].range.start;
    (!changes.windows(2).any(overlap)).then_some(changes)
}

/// Edits have whole lines, and lines around them that make them unique. What remains without these is
/// more often within one body: a change for each run of lines that differ.
fn shortest(at: usize, with: &str, without: &str) -> Vec<Change> {
    let (old, new) = (lines(with), lines(without));
    // How many lines both have in common from here on.
    let mut common = vec![vec![0; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] = match old[i] == new[j] {
                true => common[i + 1][j + 1] + 1,
                false => common[i + 1][j].max(common[i][j + 1]),
            };
        }
    }
    let (mut changes, mut at) = (Vec::<Change>::new(), at);
    let (mut i, mut j, mut is_new) = (0, 0, true);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            (at, i, j, is_new) = (at + old[i].len(), i + 1, j + 1, true);
            continue;
        }
        if is_new {
            changes.push(Change { range: at..at, text: String::new() });
        }
        is_new = false;
        let change = changes.last_mut().expect("one has begun");
        if i < old.len() && (j == new.len() || common[i + 1][j] >= common[i][j + 1]) {
            at += old[i].len();
            change.range.end = at;
            i += 1;
        } else {
            change.text += new[j];
            j += 1;
        }
    }
    changes
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Returns the part of the file with the changes in it.
pub(crate) fn changed(file: &str, part: &Range<usize>, changes: &[Change]) -> String {
    let (mut text, mut at) = (String::new(), part.start);
    for change in changes {
        text += &file[at..change.range.start];
        text += &change.text;
        at = change.range.end;
    }
    text + &file[at..part.end]
}

#[cfg(test)]
mod tests {
    use super::{changed, changes};

    const FILE: &str = "fn a() {\n    one();\n    two();\n}\nfn b() {\n    three();\n}\n";

    /// Returns the texts that change, after a check that the changes are those of the edits.
    #[track_caller]
    fn replaced(edits: &[(&str, &str)]) -> Vec<&'static str> {
        let changes = changes(FILE, edits.iter().copied()).unwrap();
        let expected = edits
            .iter()
            .fold(FILE.to_owned(), |file, (with, without)| file.replacen(with, without, 1));
        assert_eq!(changed(FILE, &(0..FILE.len()), &changes), expected);
        changes.into_iter().map(|change| &FILE[change.range]).collect()
    }

    #[test]
    fn only_the_lines_that_differ_change() {
        let two = "    two();\n";
        assert_eq!(replaced(&[("    two();\n}\nfn b() {\n", "}\nfn b() {\n")]), [two]);
        assert_eq!(replaced(&[("    one();\n    two();\n", "    one();\n    2;\n")]), [two]);
        assert_eq!(replaced(&[(two, "    one();\n    two();\n")]), [""]);
    }

    #[test]
    fn an_edit_may_change_several_places() {
        let (two, three) = ("    two();\n", "    three();\n");
        let edit = ("    two();\n}\nfn b() {\n    three();\n", "}\nfn b() {\n    four();\n");
        assert_eq!(replaced(&[edit]), [two, three]);
        assert_eq!(replaced(&[(three, ""), (two, "")]), [two, three]);
    }

    #[test]
    fn what_is_not_there_once_is_refused() {
        assert_eq!(changes(FILE, [("four();", "")]), None);
        assert_eq!(changes(FILE, [("();\n", "")]), None);
        assert_eq!(changes(FILE, [("one();\n", ""), ("one();\n", "2;\n")]), None);
    }
}
