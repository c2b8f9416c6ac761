//! The attribute over any arguments: no panic, a sentence for each refusal, and what is not refused
//! becomes a function.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use lockattr_fuzz_attribute::fuzzing::expand;
use proc_macro2::{TokenStream, TokenTree};

const FUNCTION: &str = "async fn deduct(id: u64, order: Order, names: &[&str]) -> Result<(), E> {}";

/// The compiler itself gives up long before; `syn` has no limit, and would end with the stack.
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
    // What stands in the body is the compiler's business: of an item of our own nothing is wrong.
    if refusals.is_empty() && item == FUNCTION {
        let function = syn::parse2::<syn::ItemFn>(expanded.clone());
        assert!(function.is_ok(), "not a function, and no word of it: {expanded}");
    }
    Corpus::Keep
});

fn depth(source: &str) -> usize {
    // Closed or not: as many as there can be.
    source.chars().filter(|char| "([{<&!-*|.".contains(*char)).count()
}

/// The sentences of every `compile_error!`.
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
