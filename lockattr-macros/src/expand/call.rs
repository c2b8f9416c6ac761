//! The attribute's options, as a value for the runtime.

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::Path;
use syn::ext::IdentExt;
use syn::spanned::Spanned;

use super::Expansion;
use crate::key::{Key, Locked, placed_at};
use crate::key_template::{Part, Template};
use crate::value::Manager;
use crate::written::written;

impl Expansion<'_> {
    /// The statements that make `lockattr_call`: if `when` is false, nothing else is evaluated.
    pub(super) fn call(&self) -> TokenStream {
        let (lockattr, site) = (&self.lockattr, Span::mixed_site());
        let call = self.locking_call();
        let Some(when) = &self.args.when else {
            return quote_spanned! {site=> let lockattr_call = #call; };
        };
        let at_when = site.located_at(when.span());
        let condition =
            quote_spanned! {at_when=> let lockattr_when: ::core::primitive::bool = #when; };
        quote_spanned! {site=>
            #condition
            let lockattr_call = if lockattr_when {
                #call
            } else {
                #lockattr::__private::Call::unlocked()
            };
        }
    }

    /// The expression of type `Call` for a call that locks.
    fn locking_call(&self) -> TokenStream {
        let Self { args, lockattr, function, .. } = self;
        let site = Span::mixed_site();
        let function = format!("::{}", function.sig.ident.unraw());
        let (new, locked) = match self.locked {
            Locked::One(key) => (quote_spanned! {site=> new }, self.key(key)),
            Locked::All(keys) => {
                let keys = keys.iter().map(|key| self.key(key));
                (quote_spanned! {site=> all }, quote_spanned! {site=> [#(#keys),*] })
            }
        };
        let options = self.options();
        let mut call = quote_spanned! {site=>
            #lockattr::__private::Call::#new(
                ::core::concat!(::core::module_path!(), #function),
                #locked,
                #options,
            )
        };
        if let Some(period) = &args.once_per {
            let site = site.located_at(period.span());
            call.extend(quote_spanned! {site=> .once_per(#period) });
        }
        if let Some(value) = &args.once_for {
            let value = self.key(value);
            call.extend(quote_spanned! {site=> .once_for(#value) });
        }
        call.extend(args.manager.as_ref().map(|manager| match manager {
            Manager::Named(name) => quote_spanned! {site=> .manager_named(#name) },
            Manager::Expr(manager) => {
                let site = site.located_at(manager.span());
                quote_spanned! {site=> .manager(#manager) }
            }
        }));
        if args.on_unavailable == Some("run_unlocked") {
            call.extend(quote_spanned! {site=> .run_unlocked_if_unavailable() });
        }
        call
    }

    fn key(&self, key: &Key) -> TokenStream {
        let receiver = self.function.sig.receiver();
        built(&self.lockattr, key, receiver.map(|receiver| receiver.self_token.span))
    }

    /// The `LockOptions`, with a method call for each option that is set.
    fn options(&self) -> TokenStream {
        let Self { args, lockattr, .. } = self;
        let site = Span::mixed_site();
        let variant = |of: &str, word: &str| {
            let (of, variant) = (Ident::new(of, site), variant(word));
            quote_spanned! {site=> #lockattr::#of::#variant }
        };
        let settings = [
            ("ttl", tokens(args.ttl.as_ref())),
            ("retry", tokens(args.retry.as_ref())),
            ("retry_delay", tokens(args.retry_delay.as_ref())),
            ("wait", tokens(args.wait.as_ref())),
            ("renew", tokens(args.renew.as_ref())),
            ("max_hold", tokens(args.max_hold.as_ref())),
            ("hold_at_least", tokens(args.hold_at_least.as_ref())),
            ("progress_within", tokens(args.progress_within.as_ref())),
            ("on_lost", args.on_lost.map(|word| variant("OnLost", word))),
            ("reentrant", tokens(args.reentrant.as_ref())),
            ("mode", args.mode.map(|word| variant("Mode", word))),
            ("permits", tokens(args.permits.as_ref())),
            ("release", args.release.map(|word| variant("Release", word))),
        ];
        let settings: Vec<_> =
            settings.into_iter().filter_map(|(name, it)| Some((name, it?))).collect();
        let setter = |(name, value): &(&str, TokenStream)| {
            let site = site.located_at(value.span());
            let name = Ident::new(name, site);
            quote_spanned! {site=> .#name(#value) }
        };
        let setters = settings.iter().map(setter);
        let template = self.template();
        let options =
            quote_spanned! {site=> #lockattr::LockOptions::new().template(#template) #(#setters)* };
        match self.args.has_constant_options() {
            // Evaluated by the compiler, which then needs no code for it.
            true => quote_spanned! {site=> &const { #options } },
            false => quote_spanned! {site=> &#options },
        }
    }

    /// The template of all keys of this attribute, as written.
    fn template(&self) -> TokenStream {
        let site = Span::mixed_site();
        match &*self.templates() {
            [template] => template.clone(),
            [first, rest @ ..] => {
                quote_spanned! {site=> ::core::concat!(#first #(, ", ", #rest)*) }
            }
            [] => quote_spanned! {site=> "" },
        }
    }

    pub(super) fn templates(&self) -> Vec<TokenStream> {
        match self.locked {
            Locked::One(key) => vec![as_written(key)],
            Locked::All(keys) => keys.iter().map(as_written).collect(),
        }
    }
}

/// The template, or the text of the expression in its place.
pub(crate) fn as_written(key: &Key) -> TokenStream {
    match key {
        Key::Template { literal, .. } => literal.to_token_stream(),
        Key::Expr(expr) => {
            let mut text = Literal::string(&written(&expr.to_token_stream()));
            text.set_span(Span::mixed_site());
            text.into_token_stream()
        }
    }
}

/// The key's builder. `this` is the span of the function's `self`, if it has one.
pub(crate) fn built(lockattr: &Path, key: &Key, this: Option<Span>) -> TokenStream {
    let site = Span::mixed_site();
    let parts = match key {
        Key::Template { template, literal, .. } => parts(template, literal.span(), this),
        Key::Expr(expr) => {
            let site = site.located_at(expr.span());
            quote_spanned! {site=> .verbatim(&(#expr)) }
        }
    };
    quote_spanned! {site=> #lockattr::__private::KeyBuilder::new() #parts }
}

fn tokens(value: Option<&impl ToTokens>) -> Option<TokenStream> {
    value.map(ToTokens::to_token_stream)
}

/// `cancel` is `OnLost::Cancel`.
fn variant(word: &str) -> Ident {
    let (first, rest) = word.split_at(1);
    Ident::new(&(first.to_uppercase() + rest), Span::mixed_site())
}

/// A method call of the key's builder for each part of the template, located at the literal.
fn parts(template: &Template, span: Span, this: Option<Span>) -> TokenStream {
    let site = Span::mixed_site().located_at(span);
    let part = |(index, part): (usize, &Part)| match part {
        Part::Text { text, .. } => quote_spanned! {site=> .text(#text) },
        Part::Placeholder { expr, .. } => {
            let expr = expr.as_ref().map(|expr| placed_at(expr, span, this));
            let follower = match template.follower(index) {
                Some(follower) => quote_spanned! {site=> ::core::option::Option::Some(#follower) },
                None => quote_spanned! {site=> ::core::option::Option::None },
            };
            quote_spanned! {site=> .placeholder(&(#expr), #follower) }
        }
    };
    template.parts.iter().enumerate().map(part).collect()
}
