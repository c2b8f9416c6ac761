//! Fuzzes the attribute with any arguments: it never panics, each error has a message, and without
//! an error it expands to a function.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use lockattr_fuzz_attribute::fuzzing::expand;
use proc_macro2::{TokenStream, TokenTree};

const FUNCTION: &str = "async fn deduct(id: u64, order: Order, names: &[&str]) -> Result<(), E> {}";

/// The greatest nesting. The compiler has a lower limit; `syn` has none and would overflow the
/// stack.
const DEEPEST: usize = 64;

fuzz_target!(|input: (&str, Option<&str>)| -> Corpus {
    let (args, item) = input;
    let item = item.unwrap_or(FUNCTION);
    if depth(args).max(depth(item)) > DEEPEST {
        return Corpus::Reject;
    }
    let (Ok(args), Ok(tokens)) = (args.parse(), item.parse()) else { return Corpus::Reject };
    let expanded = expand(args, &tokens);
    let errors = errors(expanded.clone());
    assert!(errors.iter().all(|message| !message.trim().is_empty()), "an error without a message");
    // The attribute does not check bodies, so only the expansion of our own function must parse.
    if errors.is_empty() && item == FUNCTION {
        let function = syn::parse2::<syn::ItemFn>(expanded.clone());
        assert!(function.is_ok(), "neither a function nor an error: {expanded}");
    }
    Corpus::Keep
});

fn depth(source: &str) -> usize {
    // An upper bound: closed brackets count too.
    source.chars().filter(|char| "([{<&!-*|.".contains(*char)).count()
}

/// Returns the messages of all `compile_error!`s.
fn errors(tokens: TokenStream) -> Vec<String> {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let follows_compile_error = |at: usize| {
        at >= 2 && matches!(&tokens[at - 2], TokenTree::Ident(name) if name == "compile_error")
    };
    let mut messages = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            match follows_compile_error(at) {
                true => {
                    let message: syn::LitStr = syn::parse2(group.stream()).expect("one string");
                    messages.push(message.value());
                }
                false => messages.extend(errors(group.stream())),
            }
        }
    }
    messages
}
