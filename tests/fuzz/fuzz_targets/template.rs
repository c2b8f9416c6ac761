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
    let read = template(source);
    let stands = |at: &Range<usize>| source.get(at.clone()).is_some();
    for (at, sentence) in &read.faults {
        assert!(stands(at) && !sentence.trim().is_empty(), "{at:?}: {sentence}");
    }
    let mut end = 0;
    for part in &read.parts {
        let (at, text) = match part {
            Piece::Text(text, at) => (at, Some(text)),
            Piece::Placeholder(is_read, _, at) => {
                assert!(*is_read || !read.faults.is_empty(), "refused without a word");
                (at, None)
            }
        };
        assert_eq!(at.start, end, "something is left out");
        let written = source.get(at.clone()).expect("a stretch of the source");
        if let Some(text) = text {
            assert_eq!(text.replace('<', "<<"), written);
        }
        end = at.end;
    }
    if read.faults.is_empty() {
        assert_eq!((read.printed.as_str(), end), (source, source.len()));
    }
    Corpus::Keep
});
