//! Fuzzes key templates: a parsed template prints back unchanged, each part has its true range, and
//! each error has a message and a range in the text.

#![no_main]

use std::ops::Range;

use libfuzzer_sys::{Corpus, fuzz_target};
use lockattr_fuzz_attribute::fuzzing::{Piece, template};

fuzz_target!(|source: &str| -> Corpus {
    // Limits the nesting of expressions, as in `attribute`.
    if source.chars().filter(|char| "([{&!-*|.".contains(*char)).count() > 64 {
        return Corpus::Reject;
    }
    let parsed = template(source);
    let is_in_source = |at: &Range<usize>| source.get(at.clone()).is_some();
    for (at, message) in &parsed.faults {
        assert!(is_in_source(at) && !message.trim().is_empty(), "{at:?}: {message}");
    }
    let mut end = 0;
    for part in &parsed.parts {
        let (at, text) = match part {
            Piece::Text(text, at) => (at, Some(text)),
            Piece::Placeholder(is_parsed, _, at) => {
                assert!(*is_parsed || !parsed.faults.is_empty(), "an error without a message");
                (at, None)
            }
        };
        assert_eq!(at.start, end, "a gap between two parts");
        let written = source.get(at.clone()).expect("a range of the source");
        if let Some(text) = text {
            assert_eq!(text.replace('<', "<<"), written);
        }
        end = at.end;
    }
    if parsed.faults.is_empty() {
        assert_eq!((parsed.printed.as_str(), end), (source, source.len()));
    }
    Corpus::Keep
});
