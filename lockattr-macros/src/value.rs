//! Reads the value after an option's `=`, and reports what to write instead of a wrong kind.

use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Error, Expr, ExprUnary, Ident, Lit, LitStr, Path, Token, UnOp, parenthesized, token};

use crate::args;

pub(crate) enum OnBusy {
    Error,
    Skip,
    Return(Box<Expr>),
}

pub(crate) enum Manager {
    Named(LitStr),
    Expr(Expr),
}

/// The compile-time value of an expression.
pub(crate) enum Constant<'a> {
    None,
    Positive(&'a Lit),
    Negative,
}

pub(crate) fn constant(expr: &Expr) -> Constant<'_> {
    match expr {
        Expr::Lit(literal) => Constant::Positive(&literal.lit),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => match constant(expr) {
            Constant::Positive(Lit::Int(_) | Lit::Float(_)) => Constant::Negative,
            _ => Constant::None,
        },
        _ => Constant::None,
    }
}

/// Any expression, without the invisible brackets in which `macro_rules!` passes it.
pub(crate) fn expr(input: ParseStream<'_>) -> syn::Result<Expr> {
    input.parse().map(ungrouped)
}

pub(crate) fn ungrouped(mut expr: Expr) -> Expr {
    while let Expr::Group(group) = expr {
        expr = *group.expr;
    }
    expr
}

/// `true`, `false`, or an expression that may be a `bool`.
pub(crate) fn flag(option: &str, input: ParseStream<'_>) -> syn::Result<Expr> {
    let expr = expr(input)?;
    match constant(&expr) {
        Constant::None | Constant::Positive(Lit::Bool(_)) => Ok(expr),
        Constant::Positive(Lit::Str(text)) if matches!(&*text.value(), "true" | "false") => {
            Err(unquote(option, text))
        }
        constant => {
            let quotes = match constant {
                Constant::Positive(Lit::Str(_)) => ", without the quotes",
                _ => "",
            };
            let sentence = format!(
                "`{option}` is a `bool`: write `{option} = true`, `{option} = false`, or an \
                 expression of that type{quotes}"
            );
            Err(Error::new_spanned(&expr, sentence))
        }
    }
}

/// `true` or `false`: known when the attribute expands.
pub(crate) fn literal_flag(option: &str, input: ParseStream<'_>) -> syn::Result<bool> {
    let expr = flag(option, input)?;
    match constant(&expr) {
        Constant::Positive(Lit::Bool(value)) => Ok(value.value),
        _ => {
            let sentence = format!(
                "`{option}` decides what the function becomes, so it cannot be an expression: write \
                 `{option} = true`, or leave it out"
            );
            Err(Error::new_spanned(&expr, sentence))
        }
    }
}

fn unquote(option: &str, text: &LitStr) -> Error {
    let sentence = format!("write `{option} = {}`, without the quotes", text.value());
    Error::new(text.span(), sentence)
}

pub(crate) fn retries(option: &str, input: ParseStream<'_>) -> syn::Result<Expr> {
    let instead = format!("leave `{option}` out and say how long to try, as in `wait = \"1h\"`");
    count(option, 0, &instead, input)
}

pub(crate) fn permits(option: &str, input: ParseStream<'_>) -> syn::Result<Expr> {
    count(option, 1, "`mode = shared` for any number of holders", input)
}

/// A number, or an expression that may be a `u32`.
fn count(option: &str, least: u32, instead: &str, input: ParseStream<'_>) -> syn::Result<Expr> {
    let expr = expr(input)?;
    let remedy = match constant(&expr) {
        Constant::None => return Ok(expr),
        Constant::Positive(Lit::Int(number)) => match number.base10_parse::<u32>() {
            Ok(_) if matches!(number.suffix(), "" | "u32") => return Ok(expr),
            Ok(count) => format!("write `{count}`"),
            Err(_) => format!("write `{}` or less, or {instead}", u32::MAX),
        },
        Constant::Positive(Lit::Str(text)) if text.value().parse::<u32>().is_ok() => {
            return Err(unquote(option, text));
        }
        Constant::Positive(_) => format!("write it as in `{option} = 10`"),
        Constant::Negative => format!("it cannot be negative, write `{option} = {least}` or more"),
    };
    let sentence = format!("`{option}` is a number, a `u32`: {remedy}");
    Err(Error::new_spanned(&expr, sentence))
}

/// One of a few words, some of them keywords.
pub(crate) fn choice(
    option: &str,
    words: &[&'static str],
    input: ParseStream<'_>,
) -> syn::Result<&'static str> {
    let at = input.span();
    let written = if input.peek(LitStr) {
        let text: LitStr = input.parse()?;
        if words.contains(&text.value().as_str()) {
            return Err(unquote(option, &text));
        }
        format!("{:?}", text.value())
    } else if input.peek(Ident::peek_any) {
        let word = input.call(Ident::parse_any)?.to_string();
        if let Some(known) = words.iter().find(|known| **known == word) {
            return Ok(known);
        }
        word
    } else {
        input.fork().parse::<proc_macro2::TokenTree>()?.to_string()
    };
    let words = words.join("`, `");
    let sentence = format!("`{option}` cannot be `{written}`; expected one of `{words}`");
    Err(Error::new(at, sentence))
}

/// `error`, `skip` or `return(EXPR)`.
pub(crate) fn on_busy(option: &str, input: ParseStream<'_>) -> syn::Result<OnBusy> {
    let keyword = input.span();
    if !input.peek(Token![return]) {
        return Ok(match choice(option, &["error", "skip", "return(…)"], input)? {
            "skip" => OnBusy::Skip,
            _ => OnBusy::Error,
        });
    }
    input.parse::<Token![return]>()?;
    let refuse = |at, remedy: &str| {
        let sentence = format!("`{option} = return(…)` takes the value to return: {remedy}");
        Err(Error::new(at, sentence))
    };
    if !input.peek(token::Paren) {
        return refuse(keyword, "write it in parentheses, as in `return(Ok(0))`");
    }
    let content;
    let parentheses = parenthesized!(content in input);
    if content.is_empty() {
        return refuse(parentheses.span.join(), "write `return(())` for none");
    }
    let value = expr(&content)?;
    if !content.is_empty() {
        let at = content.span();
        content.parse::<proc_macro2::TokenStream>()?;
        return refuse(at, "only one, as in `return(Ok(0))`");
    }
    Ok(OnBusy::Return(Box::new(value)))
}

/// The name under which a manager was installed, or an expression that may be a `&LockManager`.
pub(crate) fn manager(option: &str, input: ParseStream<'_>) -> syn::Result<Manager> {
    let expr = expr(input)?;
    let sentence = match (&expr, constant(&expr)) {
        (_, Constant::None) => return Ok(Manager::Expr(expr)),
        (_, Constant::Positive(Lit::Str(name))) if !name.value().is_empty() => {
            return Ok(Manager::Named(name.clone()));
        }
        (_, Constant::Positive(Lit::Str(_))) => format!(
            "`{option}` has an empty name: write the one the manager was installed under, as in \
             `{option} = \"orders\"`, or leave `{option}` out for the default manager"
        ),
        _ => format!(
            "`{option}` is a `&LockManager` or the name one was installed under: write \
             `{option} = &self.locks` or `{option} = \"orders\"`"
        ),
    };
    Err(Error::new_spanned(&expr, sentence))
}

pub(crate) fn name(option: &str, input: ParseStream<'_>) -> syn::Result<Ident> {
    if input.peek(Ident) {
        return input.parse();
    }
    let sentence = format!("`{option}` is a name for the body to use: write `{option} = {option}`");
    Err(input.error(sentence))
}

pub(crate) fn path(option: &str, input: ParseStream<'_>) -> syn::Result<Path> {
    if let Some(text) = input.parse::<Option<LitStr>>()? {
        return Err(unquote(option, &text));
    }
    let start = input.fork();
    Path::parse_mod_style(input).or_else(|_| {
        let sentence = format!("`{option}` is a path: write `{option} = ::my_crate::lockattr`");
        Err(Error::new_spanned(args::skip_to_comma(&start)?, sentence))
    })
}
