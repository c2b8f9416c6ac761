//! Moves every parameter into the body, so that all of them are dropped before the lock is
//! released.
//!
//! A body alone moves only what it mentions. The function would drop a parameter that it does not
//! mention (`_`, an open transaction that only has to stay alive) after the release. So the body
//! begins as the compiler begins an `async fn`: with a `let` for each parameter in order, which are
//! then dropped in reverse order.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, FnArg, Pat, PatIdent, PatType, Receiver, Signature, parse_quote_spanned};

use super::{Expansion, param_attrs};
use crate::async_trait;
use crate::locked_fn::{Block, Body};

/// The function's signature, and the statements at the start of its body.
pub(super) struct Owned {
    pub(super) sig: Signature,
    pub(super) lets: TokenStream,
}

impl Expansion<'_> {
    pub(super) fn owned(&self) -> Owned {
        let mut sig = self.function.sig.clone();
        let mut lets = TokenStream::new();
        if let Body::Stream { .. } = self.body {
            // Parameters that the body does not mention are dropped when the function is called.
            return Owned { sig, lets };
        }
        for (index, input) in sig.inputs.iter_mut().enumerate() {
            lets.extend(match input {
                FnArg::Receiver(receiver) => self.receiver(receiver),
                FnArg::Typed(param) => Some(self.param(index, param)),
            });
        }
        Owned { sig, lets }
    }

    /// `self` cannot be rebound: a mention moves it into the body, which drops it last.
    fn receiver(&self, receiver: &Receiver) -> Option<TokenStream> {
        let site = Span::mixed_site();
        let is_moved = !self.returns_future() || self.is_in_expressions("self");
        // As written: `macro_rules!` may have got it from its caller.
        let this = receiver.self_token;
        is_moved.then(|| quote_spanned! {site=> let _ = &#this; })
    }

    fn param(&self, index: usize, param: &mut PatType) -> TokenStream {
        let PatType { attrs, pat, .. } = param;
        let of_let = param_attrs::of_let(attrs);
        *attrs = param_attrs::of_param(attrs);
        let simple = matches!(&**pat, Pat::Ident(PatIdent { by_ref: None, subpat: None, .. }));
        let names = Names::of(pat);
        if self.args.leads() {
            // What a pattern leaves out stays with the function until its campaign ends.
            if names.iter().any(|binding| binding.mutability.is_some()) {
                attrs.push(parse_quote_spanned! {Span::mixed_site()=> #[allow(unused_mut)] });
            }
            return names.iter().map(|binding| self.rebind(&of_let, binding)).collect();
        }
        let is_used =
            names.iter().any(|name| self.is_in_expressions(&name.ident.unraw().to_string()));
        if self.returns_future() && !is_used {
            // Dropped when the function is called, unless its body moves it.
            return TokenStream::new();
        }
        if simple || is_used || self.is_instrumented() {
            let mut lets = TokenStream::new();
            if !simple && !self.returns_future() && !self.is_instrumented() {
                let mut rests = Rests { index, names: Vec::new() };
                rests.visit_pat_mut(pat);
                lets.extend(rests.names.iter().map(|rest| self.rebind(&of_let, rest)));
            }
            lets.extend(names.iter().map(|binding| self.rebind(&of_let, binding)));
            if names.iter().any(|binding| binding.mutability.is_some()) {
                // The body's own binding has to be mutable.
                attrs.push(parse_quote_spanned! {Span::mixed_site()=> #[allow(unused_mut)] });
            }
            return lets;
        }
        let site = Span::mixed_site().located_at(pat.span());
        let whole = Ident::new(&format!("lockattr_arg{index}"), site);
        let lets = quote_spanned! {site=>
            #(#of_let)* #[allow(unused_mut)] let mut #whole = #whole;
            #(#of_let)* let #pat = #whole;
        };
        **pat = parse_quote_spanned! {site=> #whole };
        lets
    }

    /// `let name = name;`: reported as unused where the parameter would have been.
    fn rebind(&self, attrs: &[Attribute], binding: &PatIdent) -> TokenStream {
        let site = Span::mixed_site();
        let PatIdent { mutability, ident: name, .. } = binding;
        let text = name.unraw().to_string();
        let used = if text.starts_with('_') {
            Some(quote_spanned! {site=>
                , clippy::no_effect_underscore_binding, clippy::used_underscore_binding
            })
        } else if text.starts_with("lockattr_")
            || self.is_in_expressions(&text)
            || self.is_used_below(&text)
        {
            Some(quote_spanned! {site=> , unused_variables })
        } else {
            None
        };
        let value =
            if self.args.leads() { self.of_this_term(name) } else { name.to_token_stream() };
        let shadows = match self.args.leads() {
            true => quote_spanned! {site=> clippy::shadow_reuse },
            false => quote_spanned! {site=> clippy::shadow_same },
        };
        quote_spanned! {site=>
            #(#attrs)* #[allow(#shadows #used)]
            let #mutability #name = #value;
        }
    }

    /// The block of `#[async_trait]` binds each parameter again, also one that only the attribute uses.
    pub(super) fn mentioning(&self, block: &Block) -> Block {
        let Block { braces, inside } = block.clone();
        if !async_trait::has_rewritten(&self.function.sig) {
            return Block { braces, inside };
        }
        Block {
            braces,
            inside: async_trait::mentioning(inside, &|name| self.is_in_expressions(name)),
        }
    }

    /// Whether the attribute's own expressions may name this parameter.
    fn is_in_expressions(&self, name: &str) -> bool {
        names(&self.expressions, name)
    }

    /// Whether an attribute below may use this parameter, which can still be moved into the body.
    fn is_used_below(&self, name: &str) -> bool {
        self.is_instrumented()
            || self.function.attrs.iter().any(|attr| {
                !attr.path().is_ident("doc") && names(&attr.to_token_stream().to_string(), name)
            })
    }

    /// Whether unused parameters are dropped before the body is polled.
    fn returns_future(&self) -> bool {
        matches!(self.body, Body::Future { .. })
    }

    /// `#[tracing::instrument]` records the parameters by name, so they keep their names.
    fn is_instrumented(&self) -> bool {
        self.function
            .attrs
            .iter()
            .any(|attr| attr.path().segments.last().is_some_and(|last| last.ident == "instrument"))
    }
}

/// Whether `name` is a word of the text.
fn names(text: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.split(|c| !is_word(c)).any(|word| word == name)
}

#[derive(Default)]
struct Names(Vec<PatIdent>);

impl Names {
    fn of(pat: &Pat) -> Vec<PatIdent> {
        let mut names = Self::default();
        names.visit_pat_mut(&mut pat.clone());
        names.0
    }
}

impl VisitMut for Names {
    fn visit_pat_ident_mut(&mut self, binding: &mut PatIdent) {
        self.0.push(binding.clone());
        visit_mut::visit_pat_ident_mut(self, binding);
    }
}

/// Names what a pattern leaves out by `_`, if that can be moved.
struct Rests {
    index: usize,
    names: Vec<PatIdent>,
}

impl VisitMut for Rests {
    fn visit_pat_mut(&mut self, pat: &mut Pat) {
        match pat {
            Pat::Wild(wild) => {
                let name = format!("lockattr_rest{}_{}", self.index, self.names.len());
                let name = Ident::new(&name, Span::mixed_site().located_at(wild.span()));
                let binding = PatIdent {
                    attrs: Vec::new(),
                    by_ref: None,
                    mutability: None,
                    ident: name,
                    subpat: None,
                };
                self.names.push(binding.clone());
                *pat = Pat::Ident(binding);
            }
            // The function does not drop what is behind a reference.
            Pat::Reference(_) => {}
            _ => visit_mut::visit_pat_mut(self, pat),
        }
    }
}
