//! A function that returns a stream: the lock is acquired at the first poll.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::Type;
use syn::spanned::Spanned;

use super::output::erase_impl_trait;
use super::{Expansion, async_move, closure, returning};
use crate::locked_fn::Block;
use crate::stream_shape::{Item, StreamShape};
use crate::value::OnBusy;

impl Expansion<'_> {
    pub(super) fn stream(&self, shape: &StreamShape, block: &Block) -> TokenStream {
        let lockattr = &self.lockattr;
        let site = Span::mixed_site().located_at(block.braces);
        let call = self.call();
        let named = self.lease();
        let made = returning(&erase_impl_trait(shape.stream.clone()), block);
        let make = closure(&quote! { #named #made }, block.braces);
        let mut opened = quote_spanned! {site=> lockattr_entry.stream(#make, lockattr_refuse) };
        let either = quote_spanned! {site=> #lockattr::__private::Either };
        let busy = self.busy(|value, at_value| {
            let instead = quote_spanned! {at_value=> #either::Right(#value) };
            quote_spanned! {site=> ::core::result::Result::Ok(#instead) }
        });
        if busy.is_some() {
            opened = quote_spanned! {site=> #either::Left(#opened) };
        }
        let opening = async_move(
            &quote_spanned! {site=>
                #call
                match lockattr_call.enter().await {
                    ::core::result::Result::Ok(lockattr_entry) => {
                        ::core::result::Result::Ok(#opened)
                    }
                    #busy
                    ::core::result::Result::Err(lockattr_error) => {
                        ::core::result::Result::Err(lockattr_error)
                    }
                }
            },
            block.braces,
        );
        let refuse = self.refuse_item(&self.item(shape));
        let stream = quote_spanned! {site=>
            #lockattr::__private::stream(#opening, lockattr_refuse)
        };
        let stream = match shape.boxed {
            true => quote_spanned! {site=> ::std::boxed::Box::pin(#stream) },
            false => stream,
        };
        quote_spanned! {site=>
            #refuse
            #stream
        }
    }

    fn item(&self, shape: &StreamShape) -> Type {
        let lockattr = &self.lockattr;
        match &shape.item {
            Item::Named(item) => erase_impl_trait(item.clone()),
            Item::Of(alias) => {
                syn::parse_quote!(<#alias as #lockattr::__private::Stream>::Item)
            }
        }
    }

    fn refuse_item(&self, item: &Type) -> TokenStream {
        let Self { args, lockattr, .. } = self;
        let site = Span::mixed_site();
        let at_item = site.located_at(item.span());
        let refuse = match &args.on_busy {
            Some(OnBusy::Skip) => quote_spanned! {site=> {
                #[allow(unused_imports)]
                use #lockattr::__private::{SkippedWithRoom as _, SkippedWithout as _};
                (&#lockattr::__private::ItemsOf::<#item>::new()).skip()
            } },
            _ => quote_spanned! {at_item=> #lockattr::__private::reject_item::<#item> },
        };
        quote_spanned! {site=> let lockattr_refuse = #refuse; }
    }
}
