//! Rewrites the function with its body under the lock. No policy here: the runtime defines what the
//! options mean.
//!
//! Every generated name is mixed-site: it cannot see names of the user's code, nor be seen there.
//! All of them begin with `lockattr_`: the compiler then suggests none of them for an unknown name, and
//! a pattern of ours does not meet a constant or a `static` of the user's, which no hygiene hides.

pub(crate) mod call;
mod entered;
mod lead;
mod output;
mod owned;
mod param_attrs;
mod register;
mod stand_in;
mod stream;

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, Path, Type, parse_quote};

use crate::args::Args;
use crate::future_shape::may_be_an_alias;
use crate::impl_block::ImplBlock;
use crate::key::Locked;
use crate::locked_fn::{Block, Body, LockedFn};
use crate::mistakes::Mistakes;
use crate::params::Params;
use crate::valid::{self, leader, once, share};
use crate::value::OnBusy;
use output::{erase_impl_trait, output};
use owned::Owned;
use stand_in::stand_in;

/// Expands the attribute: over an `impl` block, to defaults for its functions; otherwise to a
/// function under a lock, or to the mistakes beside an item that causes no further errors.
pub(crate) fn distributed_lock(args: TokenStream, item: &TokenStream) -> TokenStream {
    if let Some(block) = ImplBlock::of(item) {
        return block.with_defaults(args);
    }
    let mut mistakes = Mistakes::default();
    let args = Args::parse(args, &mut mistakes);
    let function = mistakes.keep(syn::parse2::<LockedFn>(item.clone()));
    let body = function.as_ref().and_then(|function| mistakes.keep(Body::of(function)));
    let params = function.as_ref().map(|function| Params::of(&function.sig));
    valid::check(&args, params.as_ref(), &mut mistakes);
    if body.as_ref().is_some_and(Body::is_plain) {
        valid::check_plain(&args, &mut mistakes);
    }
    if let (Some(function), Some(body)) = (&function, &body) {
        leader::check_function(&args, function, body, &mut mistakes);
        once::check_function(&args, body, &mut mistakes);
        share::check_function(&args, body, &mut mistakes);
    }
    match (mistakes.into_error(), &function, &body, args.locked()) {
        (None, Some(function), Some(body), Some(locked)) => {
            Expansion::new(&args, locked, function, body).function()
        }
        (mistakes, function, ..) => {
            let mistakes = mistakes.map(Error::into_compile_error);
            let item = match function {
                Some(function) => stand_in(&args, function, item),
                None => item.clone(),
            };
            quote! { #item #mistakes }
        }
    }
}

struct Expansion<'a> {
    args: &'a Args,
    locked: Locked<'a>,
    function: &'a LockedFn,
    body: &'a Body,
    /// The type that the function yields when awaited, without any `impl Trait`.
    output: Type,
    lockattr: Path,
    /// The attribute's own expressions as text, to find the names that they use.
    expressions: String,
}

impl<'a> Expansion<'a> {
    fn new(args: &'a Args, locked: Locked<'a>, function: &'a LockedFn, body: &'a Body) -> Self {
        let output = match body {
            Body::Future { shape, .. } => shape.output.clone(),
            Body::Async(_) | Body::TokioEntry(_) | Body::Plain(_) | Body::Stream { .. } => {
                output(&function.sig)
            }
        };
        Self {
            args,
            locked,
            function,
            body,
            output: erase_impl_trait(output),
            lockattr: args.krate.clone().unwrap_or_else(|| parse_quote!(::lockattr)),
            expressions: args.expressions(locked),
        }
    }

    fn function(&self) -> TokenStream {
        let (args, LockedFn { attrs, vis, block: Block { braces, .. }, .. }) =
            (self.args, self.function);
        let site = Span::mixed_site().located_at(*braces);
        let Owned { sig, lets } = self.owned();
        let under_lock = |block| {
            let body = returning(&self.output, block);
            if args.leads() { self.leading(&lets, &body) } else { self.under_lock(&lets, &body) }
        };
        let inside = match self.body {
            Body::Async(block) | Body::Plain(block) => under_lock(block),
            Body::TokioEntry(entry) => entry.with_block(&under_lock(&entry.block)),
            Body::Stream { shape, block } => self.stream(shape, block),
            Body::Future { shape, block } => {
                let block = self.mentioning(block);
                let building = returning(&erase_impl_trait(shape.future.clone()), &block);
                let building = async_move(&quote! { #lets #building }, *braces);
                let body = quote_spanned! {site=>
                    #[allow(clippy::async_yields_async)]
                    let lockattr_future = #building.await;
                    lockattr_future.await
                };
                let locked = self.under_lock(&TokenStream::new(), &body);
                let locked = async_move(&locked, *braces);
                if shape.boxed {
                    quote_spanned! {site=> ::std::boxed::Box::pin(#locked) }
                } else {
                    locked
                }
            }
        };
        // With the user's own braces, the compiler points at the user's function when it reports
        // it. Not around a lone `async` block, which clippy would take for an `async fn`.
        let opaque = match self.body {
            Body::Future { shape, .. } => !shape.boxed,
            Body::Stream { shape, .. } => !shape.boxed,
            _ => false,
        };
        // For clippy, which may demand the word, and sees the function's braces as the user's.
        let inside = match self.body {
            Body::TokioEntry(_) => inside,
            _ => quote_spanned! {site=> return { #inside } },
        };
        let register = self.register();
        let mut block = Group::new(Delimiter::Brace, quote! { #register #inside });
        block.set_span(if opaque { site } else { *braces });
        quote! { #(#attrs)* #vis #sig #block }
    }

    /// Statements that acquire the lock, run `body` after `lets` and return the outcome.
    fn under_lock(&self, lets: &TokenStream, body: &TokenStream) -> TokenStream {
        let Self { args, lockattr, output, .. } = self;
        let braces = self.function.block.braces;
        // The compiler reports there what the body returns with a lifetime that is too short.
        let site = Span::mixed_site().located_at(braces);
        let call = self.call();
        let named = self.lease();
        let body = quote! { #lets #named #body };
        let private = quote_spanned! {site=> #lockattr::__private };
        let refusal = match &args.on_busy {
            Some(OnBusy::Skip) => "skip",
            _ if self.body.is_plain() && may_be_an_alias(&self.function.sig.output) => {
                "reject_named"
            }
            _ => "reject",
        };
        let refusal = Ident::new(refusal, site);
        let refusal = quote_spanned! {site=> #private::#refusal::<#output> };
        let (suffix, wait) = match self.body.is_plain() {
            true => ("_blocking", None),
            false => ("", Some(quote_spanned! {site=> .await })),
        };
        let body = match wait {
            None => closure(&body, braces),
            Some(_) => async_move(&body, braces),
        };
        let named = |name: &str| Ident::new(&format!("{name}{suffix}"), site);
        let run = named(if args.runs_once() { "run_once" } else { "run" });
        let run = |entry| {
            let outcome = quote_spanned! {site=> #private::#run(#entry, #body, #refusal) };
            match wait {
                Some(_) => quote_spanned! {site=> #outcome #wait },
                // Its first token is the crate's name, to which the compiler would point.
                None => {
                    quote_spanned! {site=> { let lockattr_outcome = #outcome; lockattr_outcome } }
                }
            }
        };
        let busy = self.busy(|value, at_value| {
            let value = quote_spanned! {at_value=>
                #[allow(clippy::type_complexity)]
                let lockattr_value: #output = #value;
            };
            quote_spanned! {site=>
                #value
                lockattr_value
            }
        });
        let (enter, run) = match () {
            () if args.shares_result() => (
                quote_spanned! {Span::mixed_site()=> {
                    #lockattr::__private::share! {}
                    #lockattr::__private::enter_sharing::<#output>(lockattr_call, || {}).await
                } },
                quote_spanned! {site=> lockattr_entry.run(#body, #refusal).await },
            ),
            () if busy.is_none() => {
                let begin = named("begin");
                let run = run(quote_spanned! {site=> lockattr_call.#begin() });
                return quote_spanned! {site=> #call #run };
            }
            () => {
                let enter = named("enter");
                let run = run(quote_spanned! {site=> lockattr_entry });
                (quote_spanned! {site=> lockattr_call.#enter() #wait }, run)
            }
        };
        quote_spanned! {site=>
            #call
            match #enter {
                ::core::result::Result::Ok(lockattr_entry) => #run,
                #busy
                ::core::result::Result::Err(lockattr_error) => #refusal(lockattr_error),
            }
        }
    }
}

/// The user's block after an unreachable return, which tells the compiler the type: a type error is
/// reported in the block and not at the attribute.
fn returning(output: &Type, block: &Block) -> TokenStream {
    let site = Span::mixed_site();
    let at_output = site.located_at(output.span());
    let returns = quote_spanned! {at_output=>
        let lockattr_output: #output = loop {};
        return lockattr_output;
    };
    quote_spanned! {site=>
        #[allow(unreachable_code, clippy::type_complexity)]
        if false { #returns }
        #block
    }
}

/// The keywords and braces have the user's spans: for a block of ours the compiler would not name
/// the variables it moves, and would underline the attribute.
fn async_move(inside: &TokenStream, braces: Span) -> TokenStream {
    let mut block = Group::new(Delimiter::Brace, inside.clone());
    block.set_span(braces);
    quote_spanned! {braces=> async move #block }
}

/// The same on the calling thread, so that a `return` in the user's block ends the block.
fn closure(inside: &TokenStream, braces: Span) -> TokenStream {
    let mut block = Group::new(Delimiter::Brace, inside.clone());
    block.set_span(braces);
    quote_spanned! {braces=> move || #block }
}
