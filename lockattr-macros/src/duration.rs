//! `"10s"`, `"500ms"`, `"1m30s"`: duration literals, parsed at compile time.

use std::time::Duration;

use proc_macro2::{Literal, Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::{Error, Expr, Lit, LitStr};

use crate::value::{Constant, constant};

/// The value of `ttl`, `wait` and similar options.
pub(crate) enum Time {
    /// Known at compile time, to the nanosecond.
    Literal(Duration, Span),
    Expr(Expr),
}

impl Time {
    pub(crate) fn from_expr(option: &str, expr: Expr) -> syn::Result<Self> {
        let refuse = |remedy: &str| {
            let sentence = format!("`{option}` is a duration with its unit: {remedy}");
            Err(Error::new_spanned(&expr, sentence))
        };
        match constant(&expr) {
            Constant::None => Ok(Self::Expr(expr)),
            Constant::Negative => refuse("it cannot be negative, write `\"10s\"` or `\"500ms\"`"),
            Constant::Positive(Lit::Str(text)) => literal(option, text),
            Constant::Positive(Lit::Int(number)) if number.suffix().is_empty() => {
                let digits = number.base10_digits();
                refuse(&format!("write `\"{digits}s\"` or `\"{digits}ms\"`"))
            }
            Constant::Positive(Lit::Int(number)) => {
                refuse(&format!("write it as a string, `\"{number}\"`"))
            }
            Constant::Positive(Lit::Float(number)) => {
                refuse(&format!("write `\"{}s\"`", number.base10_digits()))
            }
            Constant::Positive(_) => refuse("write `\"10s\"`, `\"500ms\"` or `\"1m30s\"`"),
        }
    }

    /// The value and its location, if it is known.
    pub(crate) fn known(&self) -> Option<(Duration, Span)> {
        match self {
            Self::Literal(duration, span) => Some((*duration, *span)),
            Self::Expr(_) => None,
        }
    }
}

fn literal(option: &str, text: &LitStr) -> syn::Result<Time> {
    let written = text.value();
    match humantime::parse_duration(&written) {
        Ok(duration) => Ok(Time::Literal(duration, text.span())),
        Err(reason) => {
            let sentence = format!(
                "`{option}`: {written:?} is not a duration ({reason}): write `\"10s\"`, \
                 `\"500ms\"` or `\"1m30s\"`"
            );
            Err(Error::new(text.span(), sentence))
        }
    }
}

impl ToTokens for Time {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let (duration, span) = match self {
            Self::Expr(expr) => return expr.to_tokens(tokens),
            Self::Literal(duration, span) => (duration, Span::mixed_site().located_at(*span)),
        };
        let seconds = Literal::u64_unsuffixed(duration.as_secs());
        tokens.extend(if duration.subsec_nanos() == 0 {
            quote_spanned! {span=> ::core::time::Duration::from_secs(#seconds) }
        } else if let Some(millis) = whole_millis(*duration) {
            let millis = Literal::u64_unsuffixed(millis);
            quote_spanned! {span=> ::core::time::Duration::from_millis(#millis) }
        } else {
            let nanos = Literal::u32_unsuffixed(duration.subsec_nanos());
            quote_spanned! {span=> ::core::time::Duration::new(#seconds, #nanos) }
        });
    }
}

fn whole_millis(duration: Duration) -> Option<u64> {
    let whole = duration.subsec_nanos().is_multiple_of(1_000_000);
    whole.then(|| u64::try_from(duration.as_millis()).ok()).flatten()
}
