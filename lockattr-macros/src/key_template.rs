//! Splits a key template into text and placeholders; works on strings only, without spans.

mod against_params;
mod ends;

use std::fmt::{self, Display, Write};
use std::ops::Range;

use syn::{Expr, Ident};

/// A key may have 1 KiB after escaping, and the text is part of every key.
const LONGEST_TEXT: usize = 1024;

/// `"product:<id>"`: the text `product:` and the placeholder `id`.
pub(crate) struct Template {
    pub(crate) parts: Vec<Part>,
}

pub(crate) enum Part {
    /// Text for the key, with `<<` already replaced by `<`.
    Text { text: String, at: Range<usize> },
    /// The source between `<` and `>`; `expr` is `None` if it could not be parsed.
    Placeholder { source: String, expr: Option<Expr>, at: Range<usize> },
}

pub(crate) struct Fault {
    pub(crate) at: Range<usize>,
    pub(crate) sentence: String,
}

impl Fault {
    fn new(at: &Range<usize>, sentence: impl Into<String>) -> Self {
        Self { at: at.clone(), sentence: sentence.into() }
    }
}

impl Template {
    /// Parses as much of the template as possible.
    pub(crate) fn parse(source: &str) -> (Self, Vec<Fault>) {
        let mut parts = Vec::new();
        let mut faults = Vec::new();
        let mut text = String::new();
        let mut text_start = 0;
        let mut at = 0;
        while let Some(open) = source[at..].find('<').map(|offset| at + offset) {
            text.push_str(&source[at..open]);
            if source[open + 1..].starts_with('<') {
                text.push('<');
                at = open + 2;
                continue;
            }
            push_text(&mut parts, &mut text, text_start..open);
            let (placeholder, fault) = read_placeholder(source, open);
            faults.extend(fault);
            at = placeholder.at().end;
            text_start = at;
            parts.push(placeholder);
        }
        text.push_str(&source[at..]);
        push_text(&mut parts, &mut text, text_start..source.len());
        let template = Self { parts };
        faults.extend(template.faults_between_parts());
        (template, faults)
    }

    /// The character that follows the part at `index`. The runtime escapes it in the value, so that
    /// the end of the value can be told from the text.
    pub(crate) fn follower(&self, index: usize) -> Option<char> {
        match self.parts.get(index + 1)? {
            Part::Text { text, .. } => text.chars().next(),
            Part::Placeholder { .. } => None,
        }
    }

    fn faults_between_parts(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        if self.parts.is_empty() {
            let sentence = "the key is empty: name what to lock, as in `\"product:<id>\"`";
            faults.push(Fault::new(&(0..0), sentence));
        }
        for (index, pair) in self.parts.windows(2).enumerate() {
            // It is unknown where an unreadable placeholder was meant to end.
            let Part::Placeholder { source, at, expr: Some(_) } = &pair[0] else {
                continue;
            };
            match &pair[1] {
                Part::Placeholder { expr: None, .. } => {}
                Part::Placeholder { source: next, at: next_at, .. } => faults.push(Fault::new(
                    &(at.start..next_at.end),
                    format!(
                        "nothing between `<{source}>` and `<{next}>`, so two different argument \
                         lists could meet on one key: write `<{source}>:<{next}>`"
                    ),
                )),
                Part::Text { text, .. }
                    if text.starts_with('%') && index + 2 < self.parts.len() =>
                {
                    let sentence = format!(
                        "`%` directly after `<{source}>` reads like the value's own escapes, so two \
                         different argument lists could meet on one key: write another character \
                         after `<{source}>`"
                    );
                    faults.push(Fault::new(at, sentence));
                }
                Part::Text { .. } => {}
            }
        }
        let length: usize = self.parts.iter().map(Part::text_length).sum();
        if length > LONGEST_TEXT {
            let sentence = format!(
                "the key's text alone has {length} bytes, and a key has room for {LONGEST_TEXT}: \
                 shorten it"
            );
            faults.push(Fault::new(&(0..0), sentence));
        }
        faults
    }
}

impl Part {
    fn at(&self) -> &Range<usize> {
        match self {
            Self::Text { at, .. } | Self::Placeholder { at, .. } => at,
        }
    }

    fn text_length(&self) -> usize {
        match self {
            Self::Text { text, .. } => text.len(),
            Self::Placeholder { .. } => 0,
        }
    }
}

/// Returns the source that the template was parsed from.
impl Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                Part::Text { text, .. } => f.write_str(&text.replace('<', "<<"))?,
                Part::Placeholder { source, .. } => {
                    f.write_char('<')?;
                    f.write_str(source)?;
                    f.write_char('>')?;
                }
            }
        }
        Ok(())
    }
}

fn push_text(parts: &mut Vec<Part>, text: &mut String, at: Range<usize>) {
    if !text.is_empty() {
        let text = std::mem::take(text);
        parts.push(Part::Text { text, at });
    }
}

/// Whether the name is only one of a parameter after `r#`.
pub(crate) fn is_keyword(name: &str) -> bool {
    syn::parse_str::<Ident>(name).is_err() && syn::parse_str::<Ident>(&format!("r#{name}")).is_ok()
}

/// Both ends are those of an expression, as in `<a > b>`.
fn ambiguous(rest: &str, end: usize, longer: usize, at: &Range<usize>) -> Fault {
    let (short, long) = (&rest[..end], &rest[..longer]);
    Fault::new(
        at,
        format!(
            "`<{long}>` in the key may be `<{short}>` before a text, or the comparison of two values: \
             write `<({long})>` for the comparison, or a text without `>`"
        ),
    )
}

/// Reads the placeholder whose `<` is at `open`. It ends at the first `>` up to which it is an
/// expression, so `<user.get::<u64>()>` is one placeholder.
fn read_placeholder(source: &str, open: usize) -> (Part, Option<Fault>) {
    let start = open + 1;
    let rest = &source[start..];
    let mut ends = ends::ends(rest).into_iter();
    let parsed = |end: usize| syn::parse_str::<Expr>(&rest[..end]).ok();
    if let Some((end, expr)) = ends.find_map(|end| Some((end, parsed(end)?))) {
        let at = open..start + end + 1;
        let longer = ends.find(|end| parsed(*end).is_some());
        let fault = longer.map(|longer| ambiguous(rest, end, longer, &at));
        let source = rest[..end].to_owned();
        return (Part::Placeholder { source, expr: Some(expr), at }, fault);
    }
    let (content, at, sentence) = match rest.find('>') {
        None => (
            rest,
            open..source.len(),
            format!(
                "unclosed `<` in the key, at `<{rest}`: end it with `>`, or write `<<` for a plain `<`"
            ),
        ),
        Some(end) if rest[..end].trim().is_empty() => (
            &rest[..end],
            open..start + end + 1,
            format!(
                "empty placeholder `<{}>` in the key: write what to put there, as in `<id>`",
                &rest[..end]
            ),
        ),
        Some(end) if is_keyword(&rest[..end]) => (
            &rest[..end],
            open..start + end + 1,
            format!(
                "`<{0}>` in the key is a keyword: write `<r#{0}>` for the parameter `r#{0}`",
                &rest[..end]
            ),
        ),
        Some(end) => (
            &rest[..end],
            open..start + end + 1,
            format!(
                "`<{}>` in the key is not an expression: write one over the parameters, as in \
                 `<id>`, or `<<` for a plain `<`",
                &rest[..end]
            ),
        ),
    };
    let placeholder = Part::Placeholder { source: content.to_owned(), expr: None, at: at.clone() };
    (placeholder, Some(Fault { at, sentence }))
}
