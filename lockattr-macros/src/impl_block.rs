//! The attribute over an `impl` block: its options are the defaults of the functions inside that
//! have the attribute too.
//!
//! Functions without the attribute stay unchanged: only an attribute on the function itself locks
//! it.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Meta, MetaList, Token, Visibility};

use crate::args::Args;
use crate::mistakes::Mistakes;
use crate::valid;

const ATTRIBUTE: &str = "distributed_lock";

/// An `impl` block, of which only the braces and the attributes between them are checked.
pub(crate) struct ImplBlock {
    head: TokenStream,
    keyword: Span,
    block: Group,
}

impl ImplBlock {
    /// The item, if it is an `impl` block.
    pub(crate) fn of(item: &TokenStream) -> Option<Self> {
        let keyword = keyword.parse2(item.clone()).ok()?;
        let mut tokens: Vec<_> = item.clone().into_iter().collect();
        match tokens.pop()? {
            // The whole item, as `macro_rules!` passes it.
            TokenTree::Group(item) if item.delimiter() == Delimiter::None && tokens.is_empty() => {
                Self::of(&item.stream())
            }
            TokenTree::Group(block) if block.delimiter() == Delimiter::Brace => {
                Some(Self { head: tokens.into_iter().collect(), keyword, block })
            }
            _ => None,
        }
    }

    /// The block with the options passed to the functions inside, or the mistakes beside it.
    pub(crate) fn with_defaults(&self, options: TokenStream) -> TokenStream {
        let mut mistakes = Mistakes::default();
        let said_nothing = options.is_empty();
        let args = Args::parse_some(options.clone(), &mut mistakes);
        valid::check(&args, None, &mut mistakes);
        if let Some(at) = args.span_of("lease") {
            let sentence = "`lease` is a name in one body: write it at the functions that use it";
            mistakes.push(Error::new(at, sentence));
        }
        let mut visitor = Visitor { options, found: false };
        let inside = visitor.items(self.block.stream());
        if !visitor.found {
            let sentence = "no function in this `impl` has `#[distributed_lock]`: put it on those that \
                            shall be locked; what stands here are their defaults";
            mistakes.push(Error::new(self.keyword, sentence));
        } else if said_nothing {
            let sentence = "`#[distributed_lock]` over an `impl` says nothing here: write what those \
                            inside have in common, as in `#[distributed_lock(ttl = \"30s\")]`, or \
                            leave it out";
            mistakes.push(Error::new(Span::call_site(), sentence));
        }
        let mut block = Group::new(Delimiter::Brace, inside);
        block.set_span(self.block.span());
        let head = &self.head;
        match mistakes.into_error() {
            None => quote! { #head #block },
            Some(mistakes) => {
                // Without the attributes, which would report the same mistakes again.
                let mut block = Group::new(Delimiter::Brace, without(self.block.stream()));
                block.set_span(self.block.span());
                let mistakes = mistakes.into_compile_error();
                quote! { #[allow(unused_variables)] #head #block #mistakes }
            }
        }
    }
}

/// The span of `impl`, if the item is one.
fn keyword(input: ParseStream<'_>) -> syn::Result<Span> {
    input.call(Attribute::parse_outer)?;
    input.parse::<Visibility>()?;
    input.parse::<Option<Token![unsafe]>>()?;
    let keyword: Token![impl] = input.parse()?;
    input.parse::<TokenStream>()?;
    Ok(keyword.span)
}

struct Visitor {
    options: TokenStream,
    found: bool,
}

impl Visitor {
    fn items(&mut self, items: TokenStream) -> TokenStream {
        each_attribute(items, &mut |meta| Some(self.attribute(meta)))
    }

    /// The attribute with the options as its defaults, if it is `distributed_lock`.
    fn attribute(&mut self, meta: Meta) -> Meta {
        let options = &self.options;
        if is_ours(&meta) {
            self.found = true;
            let own = match &meta {
                Meta::List(list) => list.tokens.clone(),
                _ => TokenStream::new(),
            };
            let path = meta.path();
            return list(&quote! { #path(defaults(#options), #own) }).unwrap_or(meta);
        }
        match conditional(&meta) {
            Some((condition, metas)) => {
                let metas = metas.into_iter().map(|meta| self.attribute(meta));
                list(&quote! { cfg_attr(#condition, #(#metas),*) }).unwrap_or(meta)
            }
            None => meta,
        }
    }
}

fn without(items: TokenStream) -> TokenStream {
    each_attribute(items, &mut |meta| (!is_ours(&meta)).then_some(meta))
}

/// The items of the block with each attribute of an item replaced or removed.
fn each_attribute(
    items: TokenStream,
    replace: &mut dyn FnMut(Meta) -> Option<Meta>,
) -> TokenStream {
    let mut replaced = TokenStream::new();
    let mut items = items.into_iter().peekable();
    while let Some(token) = items.next() {
        match (&token, items.peek()) {
            (TokenTree::Punct(pound), Some(TokenTree::Group(brackets)))
                if pound.as_char() == '#' && brackets.delimiter() == Delimiter::Bracket =>
            {
                let Ok(meta) = syn::parse2::<Meta>(brackets.stream()) else {
                    replaced.extend([token]);
                    continue;
                };
                let span = brackets.span();
                items.next();
                if let Some(meta) = replace(meta) {
                    let mut brackets = Group::new(Delimiter::Bracket, meta.to_token_stream());
                    brackets.set_span(span);
                    replaced.extend([token, brackets.into()]);
                }
            }
            // A group that `macro_rules!` passes as one token.
            (TokenTree::Group(group), _) if group.delimiter() == Delimiter::None => {
                let inside = each_attribute(group.stream(), replace);
                let mut group = Group::new(Delimiter::None, inside);
                group.set_span(token.span());
                replaced.extend([TokenTree::from(group)]);
            }
            _ => replaced.extend([token]),
        }
    }
    replaced
}

fn is_ours(meta: &Meta) -> bool {
    let name: Option<&Ident> = meta.path().segments.last().map(|name| &name.ident);
    name.is_some_and(|name| name == ATTRIBUTE)
}

/// The condition and the attributes of a `cfg_attr`.
pub(crate) fn conditional(meta: &Meta) -> Option<(Meta, Vec<Meta>)> {
    let Meta::List(list) = meta else {
        return None;
    };
    if !list.path.is_ident("cfg_attr") {
        return None;
    }
    let all = Punctuated::<Meta, Token![,]>::parse_terminated.parse2(list.tokens.clone()).ok()?;
    let mut all = all.into_iter();
    Some((all.next()?, all.collect()))
}

pub(crate) fn list(tokens: &TokenStream) -> Option<Meta> {
    syn::parse2::<MetaList>(tokens.clone()).ok().map(Meta::List)
}
