//! Fuzzes keys of any template with any values: the values can be parsed back from the key, so
//! different values give different keys, and no value adds a brace that would choose the slot.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use lockattr::__private::KeyBuilder;
use lockattr::store::LockKey;
use lockattr::store::fuzzing::finished;
use lockattr_fuzz_attribute::fuzzing::{Piece, template};

fuzz_target!(|input: (&str, Vec<&str>)| -> Corpus {
    let (source, values) = input;
    if source.chars().filter(|char| "([{&!-*|.".contains(*char)).count() > 64 {
        return Corpus::Reject;
    }
    let parsed = template(source);
    // A template with errors does not compile, and builds no keys.
    if !parsed.faults.is_empty() {
        return Corpus::Reject;
    }
    let mut left = values.iter().copied().chain(std::iter::repeat(""));
    let (mut builder, mut given) = (KeyBuilder::new(), Vec::new());
    for part in &parsed.parts {
        builder = match part {
            Piece::Text(text, _) => builder.verbatim(text),
            Piece::Placeholder(_, next, _) => {
                let value = left.next().unwrap_or_default();
                given.push(value);
                builder.placeholder(value, *next)
            }
        };
    }
    let key = finished(builder).expect("a string prints");
    assert_eq!(values_in(&key, &parsed.parts), given, "{key}");
    let braces = |text: &str| text.matches(['{', '}']).count();
    let own = parsed.parts.iter().map(|part| match part {
        Piece::Text(text, _) => braces(text),
        Piece::Placeholder(..) => 0,
    });
    assert_eq!(braces(&key), own.sum::<usize>(), "a value adds braces");
    match LockKey::new("lock:", &key) {
        Ok(lock) => assert_eq!((lock.as_str(), lock.name()), (&*key, &*format!("lock:{key}"))),
        Err(error) => {
            assert!(key.is_empty() || key.len() > 1024, "{error}");
            assert!(error.to_string().len() < 512, "an error as long as its key");
        }
    }
    Corpus::Keep
});

/// Parses the values from a key, with only the template.
fn values_in(key: &str, parts: &[Piece]) -> Vec<String> {
    let (mut rest, mut values) = (key, Vec::new());
    for part in parts {
        match part {
            Piece::Text(text, _) => rest = rest.strip_prefix(&**text).expect("the text"),
            Piece::Placeholder(_, next, _) => {
                let mut value = Vec::new();
                while let Some(char) = rest.chars().next() {
                    // A `%` of the template is not an escape if it begins the last text.
                    let ends = match next {
                        Some('%') => ends_here(rest, parts),
                        next => Some(char) == *next,
                    };
                    if ends {
                        break;
                    }
                    let bytes = match char {
                        '%' => {
                            let (digits, after) = rest[1..].split_at(2);
                            rest = after;
                            vec![u8::from_str_radix(digits, 16).expect("an escape")]
                        }
                        char => {
                            rest = &rest[char.len_utf8()..];
                            char.to_string().into_bytes()
                        }
                    };
                    value.extend(bytes);
                }
                values.push(String::from_utf8(value).expect("UTF-8"));
            }
        }
    }
    values
}

/// Returns whether only the template's last text is left.
fn ends_here(rest: &str, parts: &[Piece]) -> bool {
    matches!(parts.last(), Some(Piece::Text(text, _)) if rest == text)
}
