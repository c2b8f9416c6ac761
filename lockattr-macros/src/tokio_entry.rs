//! Recognises the output of `#[tokio::main]` and `#[tokio::test]` above the attribute.
//!
//! They turn `async fn main() { … }` into `fn main() { let body = async { … }; …block_on(body) }`
//! (tokio-macros 2, `entry.rs`). The lock goes into that `async` block. `#[tracing::instrument]` in
//! between puts all of it into the last block of a longer body (tracing-attributes 0.1,
//! `expand.rs`).

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::Token;
use syn::parse::{ParseStream, Parser};

use crate::locked_fn::Block;

/// `let body = async { … };` and what follows, or both as the last block after other statements.
pub(crate) struct TokioEntry {
    /// The tokens before each block, and the span of its braces; from the outside in.
    around: Vec<(TokenStream, Span)>,
    body: Ident,
    pub(crate) block: Block,
    rest: TokenStream,
}

impl TokioEntry {
    pub(crate) fn of(function_body: &TokenStream) -> Option<Self> {
        let mut around = Vec::new();
        let mut content = function_body.clone();
        loop {
            if let Ok(mut entry) = Self::parse.parse2(content.clone())
                && entry.body == "body"
                && blocks_on(&entry.body, entry.rest.clone())
            {
                entry.around = around;
                return Some(entry);
            }
            let mut before: Vec<_> = content.into_iter().collect();
            let last = match before.pop()? {
                TokenTree::Group(last) if last.delimiter() == Delimiter::Brace => last,
                _ => return None,
            };
            around.push((before.into_iter().collect(), last.span()));
            content = last.stream();
        }
    }

    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        input.parse::<Token![let]>()?;
        let body = input.parse()?;
        input.parse::<Token![=]>()?;
        input.parse::<Token![async]>()?;
        let block = input.parse()?;
        input.parse::<Token![;]>()?;
        Ok(Self { around: Vec::new(), body, block, rest: input.parse()? })
    }

    /// The function's body with another content for its `async` block.
    pub(crate) fn with_block(&self, content: &TokenStream) -> TokenStream {
        let Self { around, body, rest, .. } = self;
        let entry = quote! {
            let #body = async { #content };
            #rest
        };
        around.iter().rfold(entry, |inside, (before, braces)| {
            let mut block = Group::new(Delimiter::Brace, inside);
            block.set_span(*braces);
            quote! { #before #block }
        })
    }
}

/// Whether `block_on(body)` is called anywhere: otherwise the function merely has a variable
/// `body`.
fn blocks_on(body: &Ident, tokens: TokenStream) -> bool {
    let argument = body.to_token_stream().to_string();
    let is_argument = |group: &Group| {
        group.delimiter() == Delimiter::Parenthesis && group.stream().to_string() == argument
    };
    let mut after_block_on = false;
    tokens.into_iter().any(|token| {
        let called = std::mem::replace(
            &mut after_block_on,
            matches!(&token, TokenTree::Ident(name) if name == "block_on"),
        );
        match token {
            TokenTree::Group(group) => {
                called && is_argument(&group) || blocks_on(body, group.stream())
            }
            _ => false,
        }
    })
}
