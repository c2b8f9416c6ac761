//! Macros for the tests: the compiler's options for the libraries of the program they are used in, and an
//! attribute that stands beside ours.

use std::env;

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

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

/// Takes `#[case]` and `#[future]` off the parameters of a function, as rstest does.
#[proc_macro_attribute]
pub fn cases(_: TokenStream, function: TokenStream) -> TokenStream {
    without_cases(function)
}

fn without_cases(tokens: TokenStream) -> TokenStream {
    let mut kept = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => {
                let mut inside = Group::new(Delimiter::Parenthesis, without_cases(group.stream()));
                inside.set_span(group.span());
                kept.push(inside.into());
            }
            TokenTree::Group(group)
                if matches!(group.stream().to_string().as_str(), "case" | "future") =>
            {
                // The `#` before it.
                kept.pop();
            }
            token => kept.push(token),
        }
    }
    kept.into_iter().collect()
}
