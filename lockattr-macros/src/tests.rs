//! Tests outside of a compiler: the expansion of each input, and the messages about it.

mod defaults;
mod durations;
mod expansions;
mod items;
mod mistakes;
mod never_panics;
mod templates;

use proc_macro2::{TokenStream, TokenTree};

use crate::expand::distributed_lock;

const FUNCTION: &str = "async fn deduct(id: u64, order: Order, names: &[&str]) -> Result<(), E> {}";

/// Expands the attribute over an item, both as source text.
fn expand(args: &str, item: &str) -> TokenStream {
    let args = args.parse().expect("the test's arguments are tokens");
    let item = item.parse().expect("the test's item is made of tokens");
    distributed_lock(args, &item)
}

/// The compiler's messages about the attribute.
fn complaints(args: &str, item: &str) -> Vec<String> {
    compile_errors(expand(args, item))
}

fn compile_errors(tokens: TokenStream) -> Vec<String> {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let follows_compile_error = |at: usize| {
        at >= 2 && matches!(&tokens[at - 2], TokenTree::Ident(name) if name == "compile_error")
    };
    let mut errors = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token
            && follows_compile_error(at)
        {
            let sentence: syn::LitStr = syn::parse2(group.stream()).expect("one sentence");
            errors.push(sentence.value());
        }
    }
    errors
}

/// Asserts that the attribute causes this message and no other.
#[track_caller]
fn check_complaints(args: &str, item: &str, expected: &[&str]) {
    assert_eq!(complaints(args, item), expected, "about #[distributed_lock({args})] {item}");
}
