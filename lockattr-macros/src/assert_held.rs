//! `assert_held!`: checks the attribute's key in the middle of a function.

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;
use syn::parse::{Parse, ParseStream, Parser};
use syn::{Error, Expr, Path, Token};

use crate::expand::call::{as_written, built};
use crate::key::Key;
use crate::mistakes::Mistakes;
use crate::value;

/// `$crate; "product:<id>", "while {} is written", name`
struct Asserted {
    lockattr: Path,
    key: Key,
    message: Option<TokenStream>,
}

impl Parse for Asserted {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let lockattr = input.parse()?;
        input.parse::<Token![;]>()?;
        if input.is_empty() {
            let sentence = "missing key: write what has to be held, as in \
                            `assert_held!(\"product:<id>\")`";
            return Err(Error::new(Span::call_site(), sentence));
        }
        let key = match value::expr(input)? {
            several @ Expr::Array(_) => {
                let sentence = "`assert_held!` is about one key: write one for each";
                return Err(Error::new_spanned(several, sentence));
            }
            expr => Key::from_expr(expr),
        };
        if !input.is_empty() && !input.peek(Token![,]) {
            return Err(input.error("expected `,` before the message"));
        }
        input.parse::<Option<Token![,]>>()?;
        if input.is_empty() {
            return Ok(Self { lockattr, key, message: None });
        }
        Ok(Self { lockattr, key, message: Some(input.parse()?) })
    }
}

/// A statement that panics if the key is not held, or the compile error for a mistake.
pub(crate) fn assert_held(input: TokenStream) -> TokenStream {
    let mut mistakes = Mistakes::default();
    let asserted = mistakes.keep(Asserted::parse.parse2(input));
    if let Some(asserted) = &asserted {
        asserted.key.check(None, &mut mistakes);
    }
    match (mistakes.into_error(), asserted) {
        (None, Some(Asserted { lockattr, key, message })) => {
            let (template, built) = (as_written(&key), built(&lockattr, &key, None));
            let message = match message {
                Some(message) => {
                    quote_spanned! {Span::mixed_site()=>
                        ::core::option::Option::Some(::core::format_args!(#message))
                    }
                }
                None => quote_spanned! {Span::mixed_site()=> ::core::option::Option::None },
            };
            quote_spanned! {Span::mixed_site()=>
                match #lockattr::__private::unheld(#built, #template) {
                    ::core::option::Option::None => {}
                    ::core::option::Option::Some(unheld) => unheld.panic(#message),
                }
            }
        }
        (mistakes, _) => {
            let mistakes = mistakes.map(Error::into_compile_error);
            quote_spanned! {Span::mixed_site()=> { #mistakes } }
        }
    }
}
