//! A function that leads: its body becomes a closure that runs once for each term.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;

use super::{Expansion, async_move};

impl Expansion<'_> {
    /// Statements that campaign, run `body` after `lets` in each term, and return the outcome.
    pub(super) fn leading(&self, lets: &TokenStream, body: &TokenStream) -> TokenStream {
        let Self { args, lockattr, output, .. } = self;
        let site = Span::mixed_site();
        let call = self.call();
        let named = args.term.as_ref().map(|name| {
            quote_spanned! {site=> let #name: &#lockattr::Term = &lockattr_term; }
        });
        // Not an async closure: its futures may borrow from it, and the compiler cannot prove that such a
        // future is `Send` for every lifetime.
        let body = async_move(&quote! { #named #body }, self.function.block.braces);
        let term = quote_spanned! {site=> move |lockattr_term: #lockattr::Term| { #lets #body } };
        quote_spanned! {site=>
            #call
            #lockattr::__private::lead(lockattr_call, #term)
                .await
                .unwrap_or_else(|lockattr_error| #lockattr::__private::reject::<#output>(lockattr_error))
        }
    }

    /// The statement that gives a term its own value of a parameter.
    pub(super) fn of_this_term(&self, name: &Ident) -> TokenStream {
        let lockattr = &self.lockattr;
        let site = Span::mixed_site().located_at(name.unraw().span());
        quote_spanned! {site=> #lockattr::__private::for_this_term(&#name) }
    }
}
