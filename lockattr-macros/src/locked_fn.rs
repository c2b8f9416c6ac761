//! The function under the attribute: its signature parsed, its body kept as tokens.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::{
    AttrStyle, Attribute, Error, ReturnType, Signature, Token, Type, Visibility, braced, token,
};

use crate::async_trait;
use crate::future_shape::FutureShape;
use crate::lazy_output::refuse_lazy_output;
use crate::mistakes::Mistakes;
use crate::stream_shape::StreamShape;
use crate::tokio_entry::TokioEntry;

/// A function, whether or not it can run under a lock.
pub(crate) struct LockedFn {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    pub(crate) block: Block,
}

/// A block whose content is not parsed.
#[derive(Clone)]
pub(crate) struct Block {
    pub(crate) braces: Span,
    pub(crate) inside: TokenStream,
}

impl Parse for Block {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let content;
        let braces = braced!(content in input).span.join();
        let inside = content.parse()?;
        Ok(Self { braces, inside })
    }
}

impl Block {
    /// Attributes like `#![allow(…)]`, which are valid inside a function's block but in no other.
    fn take_attrs(&mut self) -> syn::Result<Vec<Attribute>> {
        let take =
            |input: ParseStream<'_>| Ok((input.call(Attribute::parse_inner)?, input.parse()?));
        let (mut attrs, inside) = take.parse2(std::mem::take(&mut self.inside))?;
        self.inside = inside;
        for attr in &mut attrs {
            attr.style = AttrStyle::Outer;
        }
        Ok(attrs)
    }
}

/// The braces become ours but keep their location: rustc reports the user's braces as superfluous
/// around a single expression, but a body without a value should be underlined.
impl ToTokens for Block {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let mut block = Group::new(Delimiter::Brace, self.inside.clone());
        block.set_span(Span::mixed_site().located_at(self.braces));
        block.to_tokens(tokens);
    }
}

pub(crate) enum Body {
    /// The body of an `async fn`.
    Async(Block),
    /// A body that builds a future and returns it.
    Future { shape: Box<FutureShape>, block: Block },
    /// A body that builds a stream and returns it.
    Stream { shape: Box<StreamShape>, block: Block },
    /// The body of a plain function, which runs on the calling thread.
    Plain(Block),
    /// The rest of an `async fn` after `#[tokio::main]` or `#[tokio::test]`.
    TokioEntry(TokioEntry),
}

impl Parse for LockedFn {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut attrs = input.call(Attribute::parse_outer)?;
        let vis = input.parse()?;
        refuse_other_items(input)?;
        let sig: Signature = input.parse()?;
        if let Some(semicolon) = input.parse::<Option<Token![;]>>()? {
            let sentence = "a function without a body has nothing to lock: put \
                            `#[distributed_lock]` on the functions that implement it";
            return Err(Error::new(semicolon.span, sentence));
        }
        let mut block: Block = input.parse()?;
        attrs.extend(block.take_attrs()?);
        Ok(Self { attrs, vis, sig, block })
    }
}

impl Body {
    /// The body to wrap, if the function can run under a lock.
    pub(crate) fn of(function: &LockedFn) -> syn::Result<Self> {
        let LockedFn { sig, block, .. } = function;
        refuse_qualifiers(sig)?;
        refuse_lazy_output(sig)?;
        if sig.asyncness.is_some() {
            return Ok(Self::Async(block.clone()));
        }
        refuse_track_caller(function)?;
        if let Some(shape) = FutureShape::of(&sig.output) {
            return Ok(Self::Future { shape: Box::new(shape), block: block.clone() });
        }
        if let Some(shape) = StreamShape::of(&sig.output) {
            return Ok(Self::Stream { shape: Box::new(shape), block: block.clone() });
        }
        if let Some(entry) = TokioEntry::of(&block.inside) {
            return Ok(Self::TokioEntry(entry));
        }
        Ok(Self::Plain(block.clone()))
    }

    /// Whether it runs on the calling thread, where it cannot be cancelled.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }
}

/// The body becomes a closure or a block, which the compiler calls from our code. For an `async fn` it
/// warns of that itself, and `#[async_trait]` makes a block as well.
fn refuse_track_caller(function: &LockedFn) -> syn::Result<()> {
    let mut tracks = function.attrs.iter().filter(|attr| attr.path().is_ident("track_caller"));
    match tracks.next() {
        Some(track) if !async_trait::has_rewritten(&function.sig) => {
            let sentence = "`#[track_caller]` would name a place in lockattr, which calls the body: leave it \
                            out, or put it on a function that passes `Location::caller()` to this one";
            Err(Error::new_spanned(track, sentence))
        }
        _ => Ok(()),
    }
}

/// Reports all qualifiers that exclude a lock at once.
fn refuse_qualifiers(sig: &Signature) -> syn::Result<()> {
    let mut mistakes = Mistakes::default();
    if let Some(constness) = sig.constness {
        let sentence = "a `const fn` cannot wait for a lock: leave `const` out";
        mistakes.push(Error::new(constness.span, sentence));
    }
    if let Some(abi) = &sig.abi {
        let sentence = "an `extern` function cannot say that the lock was refused: put \
                        `#[distributed_lock]` on a function that it calls";
        mistakes.push(Error::new(abi.extern_token.span, sentence));
    }
    if let ReturnType::Type(_, output) = &sig.output
        && let Type::Never(never) = &**output
    {
        let sentence = "a function that never returns cannot say that the lock was refused: return \
                        a `Result<_, E>` with `E: From<lockattr::Error>`";
        mistakes.push(Error::new(never.bang_token.span, sentence));
    }
    mistakes.into_error().map_or(Ok(()), Err)
}

/// Reports where the attribute belongs if it is on another item than a function.
fn refuse_other_items(input: ParseStream<'_>) -> syn::Result<()> {
    let ahead = input.fork();
    while !ahead.peek(Token![fn]) && ahead.peek(Ident::peek_any) {
        let constant = ahead.peek(Token![const])
            && !(ahead.peek2(Token![fn]) || ahead.peek2(Token![async]))
            && !(ahead.peek2(Token![unsafe]) || ahead.peek2(Token![extern]));
        let word = ahead.call(Ident::parse_any)?;
        let name = word.to_string();
        let sentence = match name.as_str() {
            "trait" | "mod" => {
                format!(
                    "`#[distributed_lock]` goes on a function: put it on those inside this `{name}`"
                )
            }
            "const" if !constant => continue,
            "async" | "unsafe" | "safe" | "default" | "auto" => continue,
            "extern" if !before_block(&ahead) => {
                ahead.parse::<Option<syn::LitStr>>()?;
                continue;
            }
            _ => format!("`#[distributed_lock]` goes on a function, not on this `{name}`"),
        };
        return Err(Error::new(word.span(), sentence));
    }
    Ok(())
}

/// After `extern`: whether a crate or a block of foreign items follows, and no function.
fn before_block(ahead: ParseStream<'_>) -> bool {
    let block = ahead.peek(token::Brace) || ahead.peek2(token::Brace);
    block || ahead.peek(Token![crate])
}
