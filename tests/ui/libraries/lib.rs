//! A macro that expands to the compiler's options for the libraries of the program it is used in.

use std::env;

use proc_macro::TokenStream;

/// Expands to a `(&str, &[[&str; 2]])`: the path of the compiler, and its options `-L` and `--extern` with
/// their values. With them, a test can compile other files with the libraries of its own program.
///
/// Only the compiler's command line names these libraries. The folder where Cargo writes them also has
/// those of other features and of earlier builds, under the same names with other numbers. A macro runs
/// inside the compiler, so it can read the command line.
#[proc_macro]
pub fn libraries(_: TokenStream) -> TokenStream {
    let compiler = env::current_exe().unwrap_or_default();
    let mut words = env::args();
    let mut options = Vec::new();
    while let Some(word) = words.next() {
        if word == "-L" || word == "--extern" {
            options.push([word, words.next().unwrap_or_default()]);
        }
    }
    let expression = format!("({compiler:?}, &{options:?})");
    expression.parse().expect("a string's debug format is a literal")
}
