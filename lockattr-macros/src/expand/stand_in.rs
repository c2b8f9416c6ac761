//! The output beside the mistakes: the user's item, in a form that causes no further errors.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::Signature;

use super::output::{has_impl_trait, output};
use crate::args::Args;
use crate::future_shape::FutureShape;
use crate::locked_fn::LockedFn;
use crate::stream_shape::StreamShape;

/// The function unchanged, so that editors still understand it; without its body if the body uses
/// the name that `lease` would define.
pub(super) fn stand_in(args: &Args, function: &LockedFn, item: &TokenStream) -> TokenStream {
    let LockedFn { attrs, vis, sig, .. } = function;
    match diverging(sig) {
        Some(body) if args.mentions("lease") => quote! {
            #(#attrs)*
            #[allow(unused)]
            #vis #sig { #body }
        },
        // A parameter that only the key names would also be reported as unused.
        _ => quote! { #[allow(unused_variables)] #item },
    }
}

/// A body of any type; `None` if the type has to be inferred from the body.
fn diverging(sig: &Signature) -> Option<TokenStream> {
    let panic = quote_spanned! {Span::mixed_site()=> ::core::unreachable!() };
    if StreamShape::of(&sig.output).is_some_and(|shape| !shape.boxed) {
        return None;
    }
    match FutureShape::of(&sig.output) {
        Some(shape) if !shape.boxed => {
            (!has_impl_trait(shape.output)).then(|| quote! { async { #panic } })
        }
        _ => (!has_impl_trait(output(sig))).then_some(panic),
    }
}
