//! Pinned expansions: `expansions/<name>.in.rs` becomes `expansions/<name>.rs`.
//!
//! `UPDATE_EXPECT=1 cargo test -p lockattr-macros` updates them; review the difference.

use std::fs;
use std::path::{Path, PathBuf};

use expect_test::expect_file;
use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, ImplItem, Item, Meta};

use super::compile_errors;
use crate::expand::distributed_lock;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("expansions")
}

/// The file with every attribute of this crate expanded, pretty-printed.
fn expand_file(input: &Path) -> String {
    let source = fs::read_to_string(input).expect("the input can be read");
    let mut file = syn::parse_file(&source).expect("the input is Rust");
    Expander.visit_file_mut(&mut file);
    prettyplease::unparse(&file)
}

struct Expander;

impl VisitMut for Expander {
    fn visit_item_mut(&mut self, item: &mut Item) {
        while let Item::Fn(function) = item
            && let Some(args) = take_attribute(&mut function.attrs)
        {
            *item = expanded(args, function);
        }
        if let Item::Impl(block) = item
            && let Some(args) = take_attribute(&mut block.attrs)
        {
            *item = expanded(args, block);
        }
        visit_mut::visit_item_mut(self, item);
    }

    fn visit_impl_item_mut(&mut self, item: &mut ImplItem) {
        while let ImplItem::Fn(function) = item
            && let Some(args) = take_attribute(&mut function.attrs)
        {
            *item = expanded(args, function);
        }
    }
}

fn take_attribute(attrs: &mut Vec<Attribute>) -> Option<TokenStream> {
    let last = |attr: &Attribute| attr.path().segments.last().map(|name| name.ident.to_string());
    let at = attrs.iter().position(|attr| last(attr).as_deref() == Some("distributed_lock"))?;
    match attrs.remove(at).meta {
        Meta::List(list) => Some(list.tokens),
        _ => Some(TokenStream::new()),
    }
}

fn expanded<T: syn::parse::Parse>(args: TokenStream, item: &impl ToTokens) -> T {
    let tokens = distributed_lock(args, &item.to_token_stream());
    assert_eq!(compile_errors(tokens.clone()), [""; 0]);
    syn::parse2(tokens).expect("the expansion is Rust")
}

#[test]
fn expansions_are_as_pinned() {
    let mut inputs: Vec<_> = fs::read_dir(folder())
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_string_lossy().ends_with(".in.rs"))
        .collect();
    inputs.sort();
    assert!(inputs.len() >= 24, "inputs are missing: {inputs:?}");
    for input in inputs {
        let pinned = input.to_string_lossy().replace(".in.rs", ".rs");
        let expansion = expand_file(&input);
        assert!(!expansion.contains("distributed_lock"), "left as it was: {input:?}");
        expect_file![pinned].assert_eq(&expansion);
    }
}

#[test]
fn an_expansion_fits_a_screen() {
    let lines = |name: &str| {
        let expansion = expand_file(&folder().join(name));
        let function = expansion.find("async fn").expect("a function");
        expansion[function..].lines().count()
    };
    assert!(lines("plain.in.rs") <= 48, "{} lines", lines("plain.in.rs"));
    assert!(lines("everything.in.rs") <= 75, "{} lines", lines("everything.in.rs"));
}
