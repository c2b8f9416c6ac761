//! The entry points for the fuzzers of `fuzz/`: the attribute, a template and a duration, as
//! values. Only in their builds, in which this crate is an ordinary library.

use std::ops::Range;
use std::time::Duration;

use proc_macro2::{Span, TokenStream};
use syn::{Expr, ExprLit, Lit, LitStr};

use crate::duration::Time;
use crate::key_template::{Part, Template};

/// Expands the attribute over an item.
pub fn expand(args: TokenStream, item: &TokenStream) -> TokenStream {
    crate::expand::distributed_lock(args, item)
}

/// A parsed template.
#[derive(Debug)]
pub struct Read {
    pub parts: Vec<Piece>,
    /// The location and the message of each fault.
    pub faults: Vec<(Range<usize>, String)>,
    pub printed: String,
}

/// A part of a template, and its location.
#[derive(Debug)]
pub enum Piece {
    Text(String, Range<usize>),
    /// Whether it could be read, and the character that follows it.
    Placeholder(bool, Option<char>, Range<usize>),
}

pub fn template(source: &str) -> Read {
    let (template, faults) = Template::parse(source);
    let printed = template.to_string();
    let piece = |(nth, part): (usize, &Part)| match part {
        Part::Text { text, at } => Piece::Text(text.clone(), at.clone()),
        Part::Placeholder { expr, at, .. } => {
            Piece::Placeholder(expr.is_some(), template.follower(nth), at.clone())
        }
    };
    let parts = template.parts.iter().enumerate().map(piece).collect();
    let faults = faults.into_iter().map(|fault| (fault.at, fault.sentence)).collect();
    Read { parts, faults, printed }
}

/// A parsed duration, or the message of its error.
pub fn duration(text: &str) -> Result<Duration, String> {
    let lit = Lit::Str(LitStr::new(text, Span::call_site()));
    let time = Time::from_expr("ttl", Expr::Lit(ExprLit { attrs: Vec::new(), lit }));
    let time = time.map_err(|mistake| mistake.to_string())?;
    Ok(time.known().expect("a string is known").0)
}
