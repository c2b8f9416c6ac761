//! The value of `key`: a template where it is a string, else any expression.

use std::ops::Range;

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::ParseStream;
use syn::{Error, Expr, ExprLit, Lit, LitStr};

use crate::key_template::{Fault, Template};
use crate::mistakes::Mistakes;
use crate::params::Params;
use crate::value;

/// What to lock.
pub(crate) enum Key {
    Template { template: Template, faults: Vec<Fault>, literal: LitStr },
    Expr(Expr),
}

impl Key {
    pub(crate) fn read(input: ParseStream<'_>) -> syn::Result<Self> {
        Ok(match value::expr(input)? {
            Expr::Lit(ExprLit { lit: Lit::Str(literal), .. }) => {
                let (template, faults) = Template::parse(&literal.value());
                Self::Template { template, faults, literal }
            }
            expr => Self::Expr(expr),
        })
    }

    /// What is wrong with the template, and with its use of the parameters where they are known.
    pub(crate) fn check(&self, params: Option<&Params>, mistakes: &mut Mistakes) {
        let Self::Template { template, faults, literal } = self else {
            return;
        };
        let against = params.map(|params| template.faults_against(params));
        for Fault { at, sentence } in faults.iter().chain(against.iter().flatten()) {
            mistakes.push(Error::new(span_within(literal, at), sentence));
        }
    }
}

/// Where a stretch of the template stands in the source; the whole literal if the compiler will
/// not say, or if escapes have moved it.
fn span_within(literal: &LitStr, at: &Range<usize>) -> Span {
    let token = literal.token();
    let offset = token.to_string().find(&literal.value());
    offset
        .and_then(|offset| token.subspan(offset + at.start..offset + at.end))
        .unwrap_or_else(|| literal.span())
}

/// The placeholder's tokens, placed under the literal: there the compiler underlines what it does
/// not like, and there `macro_rules!` looks for its names.
pub(crate) fn placed_at(expr: &Expr, span: Span) -> TokenStream {
    fn place(tokens: TokenStream, span: Span) -> TokenStream {
        tokens
            .into_iter()
            .map(|mut token| {
                if let TokenTree::Group(group) = &token {
                    token = Group::new(group.delimiter(), place(group.stream(), span)).into();
                }
                token.set_span(span);
                token
            })
            .collect()
    }
    place(expr.to_token_stream(), span)
}
