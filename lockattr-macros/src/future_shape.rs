//! Recognises functions that return a future: written so, or made so by `#[async_trait]`.

use syn::punctuated::Punctuated;
use syn::{
    AngleBracketedGenericArguments, GenericArgument, Path, PathArguments, PathSegment, ReturnType,
    Token, Type, TypeParamBound, parse_quote,
};

/// The return type of a function that builds its future itself.
pub(crate) struct FutureShape {
    pub(crate) future: Type,
    pub(crate) output: Type,
    /// The same as written: for an alias its argument, if it has one.
    pub(crate) yields: Option<Type>,
    /// Whether it is `Pin<Box<…>>` under any name, and not `impl Future`.
    pub(crate) boxed: bool,
}

impl FutureShape {
    pub(crate) fn of(output: &ReturnType) -> Option<Self> {
        let ReturnType::Type(_, future) = output else {
            return None;
        };
        Self::of_type(future)
    }

    pub(crate) fn of_type(future: &Type) -> Option<Self> {
        let future = unwrapped(future);
        let (yields, boxed) = match future {
            Type::ImplTrait(opaque) => (future_output(&opaque.bounds)?, false),
            Type::Path(path) => match alias(&path.path) {
                Some(alias) => return Some(Self::of_alias(future, alias)),
                None => (boxed_output(&path.path)?, true),
            },
            _ => return None,
        };
        Some(Self { future: future.clone(), output: yields.clone(), yields: Some(yields), boxed })
    }

    /// Only the compiler can resolve an alias, so the code names its `Output`.
    fn of_alias(future: &Type, alias: &PathSegment) -> Self {
        Self {
            future: future.clone(),
            output: parse_quote!(<#future as ::core::future::Future>::Output),
            yields: argument(alias).cloned(),
            boxed: true,
        }
    }
}

/// The aliases of the crate `futures` for a boxed future. A longer name may as well belong to a type of
/// the user's own, and tokens do not tell.
const ALIASES: [&str; 2] = ["BoxFuture", "LocalBoxFuture"];

/// The `BoxFuture<…>` of a path.
fn alias(path: &Path) -> Option<&PathSegment> {
    path.segments.last().filter(|last| is_alias(last))
}

pub(crate) fn is_alias(name: &PathSegment) -> bool {
    ALIASES.iter().any(|alias| name.ident == alias)
}

/// Whether the return type may be an alias of a boxed future or stream that was not recognised: a name
/// that ends as the known ones do.
pub(crate) fn may_be_an_alias(output: &ReturnType) -> bool {
    let ReturnType::Type(_, output) = output else { return false };
    let Type::Path(path) = unwrapped(output) else { return false };
    let last = path.path.segments.last().map(|last| last.ident.to_string());
    last.is_some_and(|last| last.ends_with("BoxFuture") || last.ends_with("BoxStream"))
}

/// The `R` of a `Pin<Box<dyn Future<Output = R>>>`.
fn boxed_output(path: &Path) -> Option<Type> {
    let last = path.segments.last()?;
    let Type::Path(boxed) = the_argument_of(last, "Pin")? else {
        return None;
    };
    match the_argument_of(boxed.path.segments.last()?, "Box")? {
        Type::TraitObject(object) => future_output(&object.bounds),
        Type::ImplTrait(opaque) => future_output(&opaque.bounds),
        _ => None,
    }
}

/// The `T` of a `name<T>`.
pub(crate) fn the_argument_of<'a>(segment: &'a PathSegment, name: &str) -> Option<&'a Type> {
    if segment.ident == name { argument(segment) } else { None }
}

/// The first type between its angle brackets.
pub(crate) fn argument(segment: &PathSegment) -> Option<&Type> {
    generics(segment)?.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(argument) => Some(unwrapped(argument)),
        _ => None,
    })
}

/// The `R` of a `Future<Output = R>` among the bounds.
fn future_output(bounds: &Punctuated<TypeParamBound, Token![+]>) -> Option<Type> {
    let future = bounds.iter().find_map(|bound| match bound {
        TypeParamBound::Trait(bound) => {
            bound.path.segments.last().filter(|segment| segment.ident == "Future")
        }
        _ => None,
    })?;
    generics(future)?.args.iter().find_map(|argument| match argument {
        GenericArgument::AssocType(output) if output.ident == "Output" => Some(output.ty.clone()),
        _ => None,
    })
}

pub(crate) fn generics(segment: &PathSegment) -> Option<&AngleBracketedGenericArguments> {
    match &segment.arguments {
        PathArguments::AngleBracketed(arguments) => Some(arguments),
        _ => None,
    }
}

/// The type without parentheses, and without the invisible ones of `macro_rules!`.
pub(crate) fn unwrapped(mut ty: &Type) -> &Type {
    loop {
        ty = match ty {
            Type::Group(group) => &group.elem,
            Type::Paren(paren) => &paren.elem,
            _ => return ty,
        }
    }
}
