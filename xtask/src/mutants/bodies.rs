//! Finds the bodies in a Rust file that a mutant may change while the program runs.

use std::ops::Range;

use syn::visit::{self, Visit};
use syn::{Block, ExprAsync, ImplItemFn, ItemFn, Signature, TraitItemFn};

/// Returns what is between the braces of each function and each `async` block, as ranges of bytes. A
/// `const fn` may be called at compile time, where no mutant is chosen yet. An `async` block is on its
/// own because two of them have two types.
pub(crate) fn bodies(file: &str) -> Result<Vec<Range<usize>>, String> {
    let mut found = Found::default();
    found.visit_file(&syn::parse_file(file).map_err(|error| error.to_string())?);
    Ok(found.0)
}

/// Returns the innermost of `bodies` that has all of a range.
pub(crate) fn innermost(bodies: &[Range<usize>], range: &Range<usize>) -> Option<Range<usize>> {
    let has = |body: &&Range<usize>| body.start <= range.start && range.end <= body.end;
    bodies.iter().filter(has).min_by_key(|body| body.len()).cloned()
}

/// Returns whether this text can be a body.
pub(crate) fn is_body(text: &str) -> bool {
    syn::parse_str::<Block>(&format!("{{{text}}}")).is_ok()
}

#[derive(Default)]
struct Found(Vec<Range<usize>>);

impl Found {
    fn function(&mut self, signature: &Signature, body: &Block) {
        if signature.constness.is_none() {
            self.body(body);
        }
    }

    fn body(&mut self, body: &Block) {
        let braces = body.brace_token.span;
        self.0.push(braces.open().byte_range().end..braces.close().byte_range().start);
    }
}

impl<'a> Visit<'a> for Found {
    fn visit_item_fn(&mut self, function: &'a ItemFn) {
        self.function(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'a ImplItemFn) {
        self.function(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'a TraitItemFn) {
        if let Some(body) = &function.default {
            self.function(&function.sig, body);
        }
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_expr_async(&mut self, block: &'a ExprAsync) {
        self.body(&block.block);
        visit::visit_expr_async(self, block);
    }
}

#[cfg(test)]
mod tests {
    use super::{bodies, innermost, is_body};

    /// Returns the body around the `¤` in `file`.
    #[track_caller]
    fn around(file: &str) -> Option<String> {
        let (before, after) = file.split_once('¤').unwrap();
        let (file, at) = (format!("{before}{after}"), before.len());
        let found = innermost(&bodies(&file).unwrap(), &(at..at));
        found.map(|range| file[range].to_owned())
    }

    #[test]
    fn the_innermost_body_is_found() {
        assert_eq!(around("fn a() { 1¤ } fn b() {}").as_deref(), Some(" 1 "));
        assert_eq!(around("impl A { async fn é(&self) { 'é'¤ } }").as_deref(), Some(" 'é' "));
        assert_eq!(around("trait A { fn a(); fn b() { ¤ } }").as_deref(), Some("  "));
        assert_eq!(around("fn a() { fn b() { ¤2 } }").as_deref(), Some(" 2 "));
        assert_eq!(around("fn a() -> impl B { async move {3¤} }").as_deref(), Some("3"));
        assert_eq!(around("fn a() { call(|| ¤4) }").as_deref(), Some(" call(|| 4) "));
        assert_eq!(around("mod a { fn b() {¤5} }").as_deref(), Some("5"));
    }

    #[test]
    fn what_is_outside_of_bodies_has_none() {
        assert_eq!(around("const A: u8 = ¤1;"), None);
        assert_eq!(around("const fn a() {¤}"), None);
        assert_eq!(around("fn a(¤) {}"), None);
        assert_eq!(around("macro_rules! a { () => { fn b() { ¤ } } }"), None);
    }

    #[test]
    fn a_body_has_all_of_its_braces() {
        assert!(is_body("if a { b() }"));
        assert!(!is_body("} fn c() {"));
        assert!(!is_body("if a {"));
    }
}
