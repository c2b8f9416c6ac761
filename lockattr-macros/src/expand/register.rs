//! Puts the attribute as it is written into the registry of all of them, where the runtime has one.

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;
use syn::ext::IdentExt;

use super::Expansion;

impl Expansion<'_> {
    /// An item for the start of the function, or nothing: which, is up to the runtime's features.
    ///
    /// In braces, so that the compiler needs no semicolon after nothing.
    pub(super) fn register(&self) -> TokenStream {
        let Self { args, lockattr, function, .. } = self;
        let site = Span::mixed_site();
        let function = format!("::{}", function.sig.ident.unraw());
        let templates = self.templates();
        let (names, values): (Vec<_>, Vec<_>) = args.written().unzip();
        quote_spanned! {site=>
            #lockattr::__private::register! { #function, [#(#templates),*] #(, #names = #values)* }
        }
    }
}
