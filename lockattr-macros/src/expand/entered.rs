//! The result of the acquisition: the lease under its name, or the value instead of the body.

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;
use syn::Expr;
use syn::spanned::Spanned;

use super::Expansion;
use crate::locked_fn::Body;
use crate::value::OnBusy;

impl Expansion<'_> {
    /// The statement that names the lease in the body.
    pub(super) fn lease(&self) -> Option<TokenStream> {
        let Self { args, lockattr, .. } = self;
        let site = Span::mixed_site();
        args.lease.as_ref().map(|name| match self.body {
            // The closure around this body has ended before its stream is polled, so a stream could
            // not borrow the lease from it.
            Body::Stream { .. } => quote_spanned! {site=>
                let #name: #lockattr::Lease = #lockattr::__private::lease();
            },
            _ => quote_spanned! {site=>
                let #name: &#lockattr::Lease = &#lockattr::__private::lease();
            },
        })
    }

    /// The arm for a busy lock, if `on_busy` has a value for it: `outcome` makes the result from
    /// the value and its location.
    pub(super) fn busy(
        &self,
        outcome: impl FnOnce(&Expr, Span) -> TokenStream,
    ) -> Option<TokenStream> {
        let Self { args, lockattr, .. } = self;
        let Some(OnBusy::Return(value)) = &args.on_busy else {
            return None;
        };
        let site = Span::mixed_site();
        let outcome = outcome(value, site.located_at(value.span()));
        Some(quote_spanned! {site=>
            ::core::result::Result::Err(lockattr_error)
                if #lockattr::__private::is_busy(&lockattr_error) =>
            {
                #outcome
            }
        })
    }
}
