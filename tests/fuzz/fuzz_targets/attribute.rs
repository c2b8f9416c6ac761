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
    let refusals = refusals(expanded.clone());
    assert!(refusals.iter().all(|sentence| !sentence.trim().is_empty()), "refused without a word");
    // The attribute does not check bodies, so only the expansion of our own function must parse.
    if refusals.is_empty() && item == FUNCTION {
        let function = syn::parse2::<syn::ItemFn>(expanded.clone());
        assert!(function.is_ok(), "not a function, and no word of it: {expanded}");
    }
    Corpus::Keep
});

fn depth(source: &str) -> usize {
    // An upper bound: closed brackets count too.
    source.chars().filter(|char| "([{<&!-*|.".contains(*char)).count()
}

/// Returns the messages of all `compile_error!`s.
fn refusals(tokens: TokenStream) -> Vec<String> {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let named = |at: usize| {
        at >= 2 && matches!(&tokens[at - 2], TokenTree::Ident(name) if name == "compile_error")
    };
    let mut sentences = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            match named(at) {
                true => {
                    let sentence: syn::LitStr = syn::parse2(group.stream()).expect("one sentence");
                    sentences.push(sentence.value());
                }
                false => sentences.extend(refusals(group.stream())),
            }
        }
    }
    sentences
}
