//! Checks a template against the parameters of its function.

use std::ops::Range;

use syn::ext::IdentExt;
use syn::{Expr, Ident};

use super::{Fault, Part, Template};
use crate::params::{Params, as_written};
use crate::suggest::nearest;

impl Template {
    /// Placeholders that begin with no parameter, and braces that were meant as placeholders.
    pub(crate) fn faults_against(&self, params: &Params) -> Vec<Fault> {
        let mut faults = Vec::new();
        for part in &self.parts {
            match part {
                Part::Text { text, at } => faults.extend(braced_params(text, at, params)),
                Part::Placeholder { source, expr, at } => {
                    let root = expr.as_ref().and_then(root).filter(|root| !params.has(root));
                    faults.extend(root.map(|root| {
                        let remedy = remedy(&root, params);
                        Fault::new(
                            at,
                            format!("`<{source}>` in the key: `{root}` is not a parameter of this function; {remedy}"),
                        )
                    }));
                }
            }
        }
        faults
    }
}

fn remedy(root: &str, params: &Params) -> String {
    if params.lost_a_pattern() {
        return format!(
            "{params}, and `#[async_trait]` has replaced a pattern: name that parameter and take it \
             apart in the body"
        );
    }
    match nearest(root, params.names()) {
        Some(param) => format!("{params}: did you mean `{}`?", as_written(param)),
        None if root == "self" => params.to_string(),
        None => format!("{params}; for a constant write its path, as in `<self::{root}>`"),
    }
}

/// The variable that a placeholder begins with. Constants (in capitals) and function calls need no
/// parameter.
fn root(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Path(path) => variable(path.path.get_ident()?),
        Expr::Field(field) => root(&field.base),
        Expr::Index(index) => root(&index.expr),
        Expr::MethodCall(call) => root(&call.receiver),
        Expr::Reference(reference) => root(&reference.expr),
        Expr::Unary(unary) => root(&unary.expr),
        Expr::Paren(paren) => root(&paren.expr),
        Expr::Group(group) => root(&group.expr),
        Expr::Cast(cast) => root(&cast.expr),
        Expr::Try(attempt) => root(&attempt.expr),
        Expr::Await(future) => root(&future.base),
        _ => None,
    }
}

fn variable(ident: &Ident) -> Option<String> {
    let name = ident.unraw().to_string();
    let first = name.trim_start_matches('_').chars().next();
    let keyword = matches!(name.as_str(), "crate" | "super");
    (!keyword && !first.is_some_and(char::is_uppercase)).then_some(name)
}

/// `{id}` in a text, where `id` is a parameter: written as for `format!`.
fn braced_params(text: &str, at: &Range<usize>, params: &Params) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (open, _) in text.match_indices('{') {
        let inner = &text[open + 1..];
        let Some(close) = inner.find('}') else {
            break;
        };
        let content = inner[..close].trim();
        let in_name = |character: char| character.is_alphanumeric() || character == '_';
        let end = content.find(|character| !in_name(character)).unwrap_or(content.len());
        let (name, after) = content.split_at(end);
        let form = after.is_empty() || after.starts_with(['.', ':', '[', '(', '?', ' ']);
        if form && params.has(name) {
            let written = &text[open..open + close + 2];
            let expr = content.split(':').next().unwrap_or(name).trim_end();
            let expr = as_written(name) + &expr[name.len()..];
            faults.push(Fault::new(
                at,
                format!("`{written}` in the key is plain text: write `<{expr}>`"),
            ));
        }
    }
    faults
}
