//! Fuzzes the text of shared results: what is read is written as text that reads alike.

#![no_main]

use libfuzzer_sys::fuzz_target;
use lockattr::__private::read_again;

fuzz_target!(|text: &str| {
    if let Some(again) = read_again(text) {
        assert_eq!(read_again(&again).as_ref(), Some(&again));
    }
});
