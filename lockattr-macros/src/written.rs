//! Tokens as the user wrote them, on one line.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};

/// The source text of `tokens`. The compiler's own printing differs from release to release, and
/// tests pin this text.
pub(crate) fn written(tokens: &TokenStream) -> String {
    // Outside of a compiler there is no source text.
    if !in_compiler() {
        return tokens.to_string();
    }
    let mut line = Line::default();
    line.add_all(tokens.clone()).map_or_else(|| tokens.to_string(), |()| line.text)
}

#[cfg(not(fuzzing))]
fn in_compiler() -> bool {
    proc_macro::is_available()
}

#[cfg(fuzzing)]
fn in_compiler() -> bool {
    false
}

/// Line and column.
type Place = (usize, usize);

#[derive(Default)]
struct Line {
    text: String,
    end: Option<Place>,
}

impl Line {
    fn add_all(&mut self, tokens: TokenStream) -> Option<()> {
        tokens.into_iter().try_for_each(|token| match token {
            TokenTree::Group(group) => self.add_group(&group),
            token => {
                let (start, end) = ends(token.span());
                self.add(&token.span().source_text()?, start, end);
                Some(())
            }
        })
    }

    fn add_group(&mut self, group: &Group) -> Option<()> {
        let (open, close) = match group.delimiter() {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Brace => ("{", "}"),
            Delimiter::Bracket => ("[", "]"),
            // Invisible delimiters are not written.
            Delimiter::None => return self.add_all(group.stream()),
        };
        // The spans of the two delimiters are lost if the group went through syn.
        let (start, end) = ends(group.span());
        self.add(open, start, (start.0, start.1 + 1));
        self.add_all(group.stream())?;
        self.add(close, (end.0, end.1.saturating_sub(1)), end);
        Some(())
    }

    fn add(&mut self, text: &str, start: Place, end: Place) {
        if self.end.is_some_and(|end| end != start) {
            self.text.push(' ');
        }
        self.text.push_str(text);
        self.end = Some(end);
    }
}

#[cfg(not(fuzzing))]
fn ends(span: Span) -> (Place, Place) {
    let span = span.unwrap();
    let (start, end) = (span.start(), span.end());
    ((start.line(), start.column()), (end.line(), end.column()))
}

#[cfg(fuzzing)]
fn ends(_span: Span) -> (Place, Place) {
    Default::default()
}
