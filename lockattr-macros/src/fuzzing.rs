//! What the fuzzers of `fuzz/` reach: the attribute, a template and a duration, as values. Only in their
//! builds, in which this is a library like any other.

use std::ops::Range;
use std::time::Duration;

use proc_macro2::{Span, TokenStream};
use syn::{Expr, ExprLit, Lit, LitStr};

use crate::duration::Time;
use crate::key_template::{Part, Template};

/// The attribute over an item.
pub fn expand(args: TokenStream, item: &TokenStream) -> TokenStream {
    crate::expand::distributed_lock(args, item)
}

/// A template as it was read.
#[derive(Debug)]
pub struct Read {
    pub parts: Vec<Piece>,
    /// Where, and what is said of it.
    pub faults: Vec<(Range<usize>, String)>,
    pub printed: String,
}

/// A stretch of a template, and where it stands.
#[derive(Debug)]
pub enum Piece {
    Text(String, Range<usize>),
    /// Whether it could be read, and which character follows it.
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

/// A duration as the attribute reads it, or what is said of it.
pub fn duration(text: &str) -> Result<Duration, String> {
    let lit = Lit::Str(LitStr::new(text, Span::call_site()));
    let time = Time::from_expr("ttl", Expr::Lit(ExprLit { attrs: Vec::new(), lit }));
    let time = time.map_err(|mistake| mistake.to_string())?;
    Ok(time.known().expect("a string is known").0)
}
