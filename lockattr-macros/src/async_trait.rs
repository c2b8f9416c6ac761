//! What is known about functions that `#[async_trait]` has rewritten: it is expanded before the
//! attributes inside its block.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::quote_spanned;
use syn::Signature;
use syn::ext::IdentExt;

/// Whether `#[async_trait]` rewrote this function: it adds a lifetime of its own name.
pub(crate) fn has_rewritten(signature: &Signature) -> bool {
    signature.generics.lifetimes().any(|param| param.lifetime.ident == "async_trait")
}

/// The name that it gives to a parameter that is a pattern.
pub(crate) fn positional(index: usize) -> String {
    format!("__arg{index}")
}

/// The body, `Box::pin(async move { … })`, with a mention of each variable that `is_used` names where
/// the block binds the parameters again. Otherwise the compiler would report a parameter as unused
/// that only the attribute uses.
pub(crate) fn mentioning(body: TokenStream, is_used: &dyn Fn(&str) -> bool) -> TokenStream {
    inside(body, Delimiter::Parenthesis, &|argument| {
        inside(argument, Delimiter::Brace, &|block| after_lets(block, is_used))
    })
}

/// The tokens, with what is between these delimiters changed.
fn inside(
    tokens: TokenStream,
    delimiter: Delimiter,
    change: &dyn Fn(TokenStream) -> TokenStream,
) -> TokenStream {
    let changed = tokens.into_iter().map(|token| match token {
        TokenTree::Group(group) if group.delimiter() == delimiter => {
            let mut changed = Group::new(delimiter, change(group.stream()));
            changed.set_span(group.span());
            changed.into()
        }
        token => token,
    });
    changed.collect()
}

/// The statements, with a mention after each `let name = name;`. What the user wrote is between braces
/// of its own.
fn after_lets(block: TokenStream, is_used: &dyn Fn(&str) -> bool) -> TokenStream {
    let mut mentioned = TokenStream::new();
    // The names since the last `let`.
    let mut names: Option<Vec<Ident>> = None;
    for token in block {
        let mut last = None;
        match (&token, &mut names) {
            (TokenTree::Ident(word), _) if word == "let" => names = Some(Vec::new()),
            (TokenTree::Ident(word), _) if word == "mut" => {}
            (TokenTree::Ident(word), Some(names)) => names.push(word.clone()),
            (TokenTree::Punct(mark), Some(_)) if mark.as_char() == '=' => {}
            (TokenTree::Punct(mark), Some(found)) if mark.as_char() == ';' => {
                if let [name, value] = found.as_slice()
                    && name == value
                    && is_used(&name.unraw().to_string())
                {
                    last = Some(mention(name));
                }
                names = None;
            }
            _ => names = None,
        }
        mentioned.extend([token]);
        mentioned.extend(last);
    }
    mentioned
}

fn mention(name: &Ident) -> TokenStream {
    let site = Span::mixed_site();
    quote_spanned! {site=> let _ = &#name; }
}
