//! Recognises functions that return a stream, by their written return type.

use syn::punctuated::Punctuated;
use syn::{Path, ReturnType, Token, Type, TypeParamBound, parse_quote};

use crate::future_shape::{generics, the_argument_of, unwrapped};

/// The return type of a function that yields items.
pub(crate) struct StreamShape {
    pub(crate) stream: Type,
    pub(crate) item: Item,
    /// Whether it is `Pin<Box<…>>` under any name, and not `impl Stream`.
    pub(crate) boxed: bool,
}

pub(crate) enum Item {
    Named(Type),
    /// The item type of an alias, as an associated type.
    Of(Type),
}

impl StreamShape {
    pub(crate) fn of(output: &ReturnType) -> Option<Self> {
        let ReturnType::Type(_, stream) = output else {
            return None;
        };
        Self::of_type(stream)
    }

    pub(crate) fn of_type(stream: &Type) -> Option<Self> {
        let stream = unwrapped(stream);
        let (item, boxed) = match stream {
            Type::ImplTrait(opaque) => (Item::Named(stream_item(&opaque.bounds)?), false),
            Type::Path(path) => (boxed_item(stream, &path.path)?, true),
            _ => return None,
        };
        Some(Self { stream: stream.clone(), item, boxed })
    }
}

/// The aliases of the crate `futures` for a boxed stream.
const ALIASES: [&str; 2] = ["BoxStream", "LocalBoxStream"];

/// The `T` of a `Pin<Box<dyn Stream<Item = T>>>`; for an alias, its `Item`.
fn boxed_item(stream: &Type, path: &Path) -> Option<Item> {
    let last = path.segments.last()?;
    if ALIASES.iter().any(|alias| last.ident == alias) {
        return Some(Item::Of(stream.clone()));
    }
    let Type::Path(boxed) = the_argument_of(last, "Pin")? else {
        return None;
    };
    match the_argument_of(boxed.path.segments.last()?, "Box")? {
        Type::TraitObject(object) => stream_item(&object.bounds).map(Item::Named),
        Type::ImplTrait(opaque) => stream_item(&opaque.bounds).map(Item::Named),
        _ => None,
    }
}

/// The `T` of a `Stream<Item = T>` among the bounds; for a `TryStream`, a `Result`.
fn stream_item(bounds: &Punctuated<TypeParamBound, Token![+]>) -> Option<Type> {
    bounds.iter().find_map(|bound| {
        let TypeParamBound::Trait(bound) = bound else {
            return None;
        };
        let last = bound.path.segments.last()?;
        let assigned = |name: &str| {
            generics(last)?.args.iter().find_map(|argument| match argument {
                syn::GenericArgument::AssocType(assoc) if assoc.ident == name => {
                    Some(assoc.ty.clone())
                }
                _ => None,
            })
        };
        match last.ident.to_string().as_str() {
            "Stream" => assigned("Item"),
            "TryStream" => {
                let (ok, error) = (assigned("Ok")?, assigned("Error")?);
                Some(parse_quote!(::core::result::Result<#ok, #error>))
            }
            _ => None,
        }
    })
}
