//! The function under the attribute: its signature parsed, its body kept as tokens.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::{
    AttrStyle, Attribute, Error, ReturnType, Signature, Token, Type, Visibility, braced, token,
};

use crate::future_shape::FutureShape;
use crate::mistakes::Mistakes;
use crate::tokio_entry::TokioEntry;

/// A function, whether or not it can run under a lock.
pub(crate) struct LockedFn {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    pub(crate) block: Block,
}

/// A block whose inside nobody has to understand.
#[derive(Clone)]
pub(crate) struct Block {
    /// Where they stand.
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
    /// Attributes like `#![allow(…)]`, which may stand inside of a function's block but of no other.
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

/// The braces become ours and stay where they are: rustc takes those of the user for superfluous
/// around a single expression, but a body without a value should be underlined.
impl ToTokens for Block {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let mut block = Group::new(Delimiter::Brace, self.inside.clone());
        block.set_span(Span::mixed_site().located_at(self.braces));
        block.to_tokens(tokens);
    }
}

/// What there is to wrap.
pub(crate) enum Body {
    /// The body of an `async fn`.
    Async(Block),
    /// A body that builds a future and returns it.
    Future { shape: Box<FutureShape>, block: Block },
    /// What `#[tokio::main]` or `#[tokio::test]` has left of an `async fn`.
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
    /// What the function has to wrap, if it can run under a lock.
    pub(crate) fn of(function: &LockedFn) -> syn::Result<Self> {
        let LockedFn { attrs, sig, block, .. } = function;
        refuse_qualifiers(sig)?;
        if sig.asyncness.is_some() {
            return Ok(Self::Async(block.clone()));
        }
        if let Some(shape) = FutureShape::of(&sig.output) {
            return Ok(Self::Future { shape: Box::new(shape), block: block.clone() });
        }
        if let Some(entry) = TokioEntry::of(&block.inside) {
            return Ok(Self::TokioEntry(entry));
        }
        let sentence = if is_entry(attrs, sig) {
            format!(
                "`#[distributed_lock]` needs an `async fn`: write `async fn {}`, or put \
                 `#[distributed_lock]` above the attribute that made it an ordinary one",
                sig.ident
            )
        } else {
            format!(
                "`#[distributed_lock]` needs an `async fn`, or one that returns a boxed future: \
                 write `async fn {}`",
                sig.ident
            )
        };
        Err(Error::new(sig.fn_token.span, sentence))
    }
}

fn is_entry(attrs: &[Attribute], sig: &Signature) -> bool {
    let named_test = |attr: &Attribute| {
        let name = attr.path().segments.last();
        name.is_some_and(|name| name.ident == "test")
    };
    sig.ident == "main" || attrs.iter().any(named_test)
}

/// What no lock can be put around, all of it at once.
fn refuse_qualifiers(sig: &Signature) -> syn::Result<()> {
    let mut mistakes = Mistakes::default();
    if let Some(constness) = sig.constness {
        let sentence = "a `const fn` cannot wait for a lock: write `async fn`";
        mistakes.push(Error::new(constness.span, sentence));
    }
    if let Some(abi) = &sig.abi {
        let sentence = "an `extern` function cannot wait for a lock: put `#[distributed_lock]` on an \
                        `async fn` that it calls";
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

/// Says where the attribute belongs if it stands on something else than a function.
fn refuse_other_items(input: ParseStream<'_>) -> syn::Result<()> {
    let ahead = input.fork();
    while !ahead.peek(Token![fn]) && ahead.peek(Ident::peek_any) {
        let constant = ahead.peek(Token![const])
            && !(ahead.peek2(Token![fn]) || ahead.peek2(Token![async]))
            && !(ahead.peek2(Token![unsafe]) || ahead.peek2(Token![extern]));
        let word = ahead.call(Ident::parse_any)?;
        let name = word.to_string();
        let sentence = match name.as_str() {
            "impl" | "trait" | "mod" => {
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
            _ => format!("`#[distributed_lock]` goes on an `async fn`, not on this `{name}`"),
        };
        return Err(Error::new(word.span(), sentence));
    }
    Ok(())
}

/// After `extern`: a crate or a block of foreign items, no function.
fn before_block(ahead: ParseStream<'_>) -> bool {
    let block = ahead.peek(token::Brace) || ahead.peek2(token::Brace);
    block || ahead.peek(Token![crate])
}
