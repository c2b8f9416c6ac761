//! The attributes of a parameter, which a `let` in its place needs in part.

use proc_macro2::{Ident, Span};
use quote::quote_spanned;
use syn::spanned::Spanned;
use syn::{Attribute, Meta};

use crate::impl_block::{conditional, list};

/// What belongs to the language, and so to a `let` as well. Any other attribute is for another macro,
/// as `#[case]` is for rstest.
const OF_ANY_STATEMENT: [&str; 6] = ["allow", "cfg", "deny", "expect", "forbid", "warn"];

/// The attributes for a `let` in place of the parameter.
pub(super) fn of_let(attrs: &[Attribute]) -> Vec<Attribute> {
    kept(attrs, &|name| OF_ANY_STATEMENT.iter().any(|known| name.is_ident(known)))
}

/// The attributes for the parameter itself.
pub(super) fn of_param(attrs: &[Attribute]) -> Vec<Attribute> {
    kept(attrs, &|_| true)
}

fn kept(attrs: &[Attribute], keep: &dyn Fn(&syn::Path) -> bool) -> Vec<Attribute> {
    let attrs = attrs.iter().filter_map(|attr| {
        let meta = kept_of(&attr.meta, keep)?;
        Some(Attribute { meta, ..attr.clone() })
    });
    attrs.collect()
}

/// An expectation becomes an allowance: whether a lint finds something in the parameter or in the `let`
/// is not for the user to know.
fn kept_of(meta: &Meta, keep: &dyn Fn(&syn::Path) -> bool) -> Option<Meta> {
    if let Some((condition, metas)) = conditional(meta) {
        let metas: Vec<_> = metas.iter().filter_map(|meta| kept_of(meta, keep)).collect();
        if metas.is_empty() {
            return None;
        }
        let site = Span::mixed_site().located_at(meta.span());
        return list(&quote_spanned! {site=> cfg_attr(#condition, #(#metas),*) });
    }
    if !keep(meta.path()) {
        return None;
    }
    let mut meta = meta.clone();
    if let Meta::List(lints) = &mut meta
        && lints.path.is_ident("expect")
    {
        let site = Span::mixed_site().located_at(lints.path.span());
        lints.path = Ident::new("allow", site).into();
    }
    Some(meta)
}
