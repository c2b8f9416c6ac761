//! The value of `key`, or one of `keys`: a template if it is a string, otherwise any expression.

use std::ops::Range;

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Error, Expr, ExprLit, Ident, Lit, LitStr, Token, bracketed, token};

use crate::args;
use crate::key_template::{Fault, Part, Template};
use crate::mistakes::Mistakes;
use crate::params::Params;
use crate::value;

#[derive(Clone, Copy)]
pub(crate) enum Locked<'a> {
    One(&'a Key),
    All(&'a [Key]),
}

pub(crate) enum Key {
    Template { template: Template, faults: Vec<Fault>, literal: LitStr },
    Expr(Expr),
}

impl Key {
    /// The source text of its placeholders, or of the expression.
    pub(crate) fn expressions(&self) -> String {
        match self {
            Self::Template { template, .. } => {
                let sources = template.parts.iter().filter_map(|part| match part {
                    Part::Placeholder { source, .. } => Some(source.as_str()),
                    Part::Text { .. } => None,
                });
                sources.collect::<Vec<_>>().join(" ")
            }
            Self::Expr(expr) => expr.to_token_stream().to_string(),
        }
    }

    pub(crate) fn read(option: &str, input: ParseStream<'_>) -> syn::Result<Self> {
        match value::expr(input).map_err(|mistake| in_quotes(option, &mistake))? {
            // Arrays do not implement `Display`.
            several @ Expr::Array(_) => {
                let sentence = format!("`{option}` is one key: write `keys = […]` for several");
                Err(Error::new_spanned(several, sentence))
            }
            expr => Ok(Self::from_expr(expr)),
        }
    }

    pub(crate) fn read_all(option: &str, input: ParseStream<'_>) -> syn::Result<Vec<Self>> {
        if is_list(input)? {
            return Self::read_list(option, input);
        }
        let expr = value::expr(input)?;
        let remedy = match &expr {
            Expr::Lit(ExprLit { lit: Lit::Str(key), .. }) => {
                format!("write `{option} = [{0}]`, or `key = {0}`", key.token())
            }
            _ => "write each key between the brackets".to_owned(),
        };
        Err(Error::new_spanned(&expr, list(option, &remedy)))
    }

    fn read_list(option: &str, input: ParseStream<'_>) -> syn::Result<Vec<Self>> {
        let content;
        let brackets = bracketed!(content in input);
        if content.is_empty() {
            let sentence = list(option, "name one key at least");
            return Err(Error::new(brackets.span.join(), sentence));
        }
        let mut keys = Vec::new();
        let mut mistakes = Mistakes::default();
        while !content.is_empty() {
            let key = value::expr(&content).and_then(|expr| {
                if content.is_empty() || content.peek(Token![,]) {
                    return Ok(Self::from_expr(expr));
                }
                if content.fork().parse().is_ok_and(args::is_part_of_a_template) {
                    return Err(content.error(quotes_missing(option)));
                }
                Err(content.error(list(option, "write `,` before the next key")))
            });
            match mistakes.keep(key) {
                Some(key) => keys.push(key),
                None => drop(args::skip_to_comma(&content)?),
            }
            content.parse::<Option<Token![,]>>()?;
        }
        mistakes.into_error().map_or(Ok(keys), Err)
    }

    pub(crate) fn from_expr(expr: Expr) -> Self {
        match expr {
            Expr::Lit(ExprLit { lit: Lit::Str(literal), .. }) => {
                let (template, faults) = Template::parse(&literal.value());
                Self::Template { template, faults, literal }
            }
            expr => Self::Expr(expr),
        }
    }

    /// Reports the faults of the template, and of its use of the parameters if they are known.
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

/// Whether the value ends with its brackets: `[a, b].concat()` does not.
fn is_list(input: ParseStream<'_>) -> syn::Result<bool> {
    let ahead = input.fork();
    if !ahead.peek(token::Bracket) {
        return Ok(false);
    }
    let content;
    bracketed!(content in ahead);
    content.parse::<TokenStream>()?;
    // A name here begins the next option, after a missing comma.
    Ok(ahead.is_empty() || ahead.peek(Token![,]) || ahead.peek(Ident::peek_any))
}

/// The sentence for a template that is no string.
pub(crate) fn quotes_missing(option: &str) -> String {
    format!(
        "a template for `{option}` needs its quotes, as in `\"product:<id>\"`; without them this is an \
         expression"
    )
}

/// What the parser says of a template without quotes would be about the expression that it is not.
fn in_quotes(option: &str, mistake: &Error) -> Error {
    Error::new(mistake.span(), quotes_missing(option))
}

fn list(option: &str, remedy: &str) -> String {
    format!(
        "`{option}` is a list, as in `{option} = [\"account:<from>\", \"account:<to>\"]`: {remedy}"
    )
}

/// The span of a part of the template; the whole literal if the compiler does not provide it, or if
/// escapes have moved it.
fn span_within(literal: &LitStr, at: &Range<usize>) -> Span {
    let token = literal.token();
    let offset = token.to_string().find(&literal.value());
    offset
        .and_then(|offset| token.subspan(offset + at.start..offset + at.end))
        .unwrap_or_else(|| literal.span())
}

/// The placeholder's tokens, located at the literal: the compiler underlines errors there, and
/// `macro_rules!` resolves names there. Only `self` is resolved as the receiver, which `this` is the span
/// of: the function has no other.
pub(crate) fn placed_at(expr: &Expr, span: Span, this: Option<Span>) -> TokenStream {
    fn place(tokens: TokenStream, span: Span, this: Span) -> TokenStream {
        tokens
            .into_iter()
            .map(|mut token| {
                if let TokenTree::Group(group) = &token {
                    token = Group::new(group.delimiter(), place(group.stream(), span, this)).into();
                }
                let is_this = matches!(&token, TokenTree::Ident(name) if name == "self");
                token.set_span(if is_this { this } else { span });
                token
            })
            .collect()
    }
    let this = this.map_or(span, |this| span.resolved_at(this));
    place(expr.to_token_stream(), span, this)
}
