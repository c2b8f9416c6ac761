//! The possible ends of a placeholder: each `>` that is not inside a string or a bracket.
//!
//! The compiler's lexer reports an invalid fragment as an error instead of only refusing it, so the
//! parser may only get whole tokens.

/// The deepest nesting that is accepted, so that no key can overflow the compiler's stack.
const DEEPEST: usize = 32;

/// The offsets in `rest` at which the placeholder may end, up to where it stops being Rust.
pub(super) fn ends(rest: &str) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut closers = Vec::new();
    let mut at = 0;
    while let Some(character) = rest[at..].chars().next() {
        let after = &rest[at + character.len_utf8()..];
        let length = match character {
            '>' => {
                if closers.is_empty() {
                    ends.push(at);
                }
                Some(1)
            }
            '(' | '[' | '{' if closers.len() < DEEPEST => {
                closers.push(match character {
                    '(' => ')',
                    '[' => ']',
                    _ => '}',
                });
                Some(1)
            }
            ')' | ']' | '}' => (closers.pop() == Some(character)).then_some(1),
            '"' => string(after).map(|length| 1 + length),
            '\'' => quote(after).map(|length| 1 + length),
            '/' if after.starts_with(['/', '*']) => None,
            _ if in_word(character) => word(&rest[at..]),
            _ if character.is_ascii_whitespace() || "!#$%&*+,-./:;<=?@^|~".contains(character) => {
                Some(1)
            }
            _ => None,
        };
        match length {
            Some(length) => at += length,
            None => break,
        }
    }
    ends
}

fn in_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The length of the word at the start of `rest`, including a string that it is the prefix of.
fn word(rest: &str) -> Option<usize> {
    let length = rest.find(|character| !in_word(character)).unwrap_or(rest.len());
    let (word, after) = rest.split_at(length);
    let unhashed = after.trim_start_matches('#');
    if let (Some(string_body), "r" | "br" | "cr") = (unhashed.strip_prefix('"'), word) {
        let closer = format!("\"{}", &after[..after.len() - unhashed.len()]);
        let end = string_body.find(&closer)? + closer.len();
        return Some(rest.len() - string_body.len() + end);
    }
    match after.strip_prefix('"') {
        None => Some(length),
        Some(string_body) if matches!(word, "b" | "c") => Some(length + 1 + string(string_body)?),
        Some(_) => None,
    }
}

/// The length of a string after its opening quote.
fn string(body: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, character) in body.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The length of a character, or of a lifetime's first letter, after its quote.
fn quote(body: &str) -> Option<usize> {
    let mut characters = body.chars();
    match (characters.next()?, characters.next()) {
        ('\'', _) => None,
        ('\\', Some(escape)) => {
            let length = 1 + escape.len_utf8();
            Some(length + body[length..].find('\'')? + 1)
        }
        (character, Some('\'')) => Some(character.len_utf8() + 1),
        (character, _) => in_word(character).then_some(character.len_utf8()),
    }
}
