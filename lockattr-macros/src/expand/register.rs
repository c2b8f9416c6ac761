//! Registers the attribute as written, if the runtime has a registry.

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;
use syn::ext::IdentExt;

use super::Expansion;

impl Expansion<'_> {
    /// An item for the start of the function, or nothing, depending on the runtime's features.
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
