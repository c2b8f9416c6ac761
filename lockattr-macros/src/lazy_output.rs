//! Refuses a function's output that is made under the lock and runs after it.

use syn::punctuated::Punctuated;
use syn::{Error, ReturnType, Signature, Token, Type, TypeParamBound};

use crate::future_shape::{FutureShape, argument, is_alias, the_argument_of, unwrapped};
use crate::stream_shape::StreamShape;

/// A value that runs only when it is polled, or asked for its next item.
enum Lazy {
    Future,
    Stream { boxed: bool },
    Iterator,
}

/// The types whose values are owned by those that hold them.
const OWNERS: [&str; 4] = ["Result", "Option", "Vec", "Box"];

/// Refuses a value that would be locked while it is made, and not while it runs.
pub(crate) fn refuse_lazy_output(sig: &Signature) -> syn::Result<()> {
    let ReturnType::Type(_, output) = &sig.output else {
        return Ok(());
    };
    let is_async = sig.asyncness.is_some();
    // A future that is built by hand or by `#[async_trait]` is awaited under the lock, as an `async
    // fn` is; what it yields runs afterwards. So does what a plain function's stream is.
    let awaited = FutureShape::of_type(output).filter(|_| !is_async);
    let is_stream = !is_async && StreamShape::of_type(output).is_some();
    let lazy = match &awaited {
        Some(future) => future.yields.as_ref().and_then(lazy_part),
        None if is_stream => None,
        None => lazy_part(output),
    };
    let Some((lazy, kind)) = lazy else {
        return Ok(());
    };
    let name = &sig.ident;
    let sentence = match kind {
        Lazy::Stream { boxed } => {
            // A trait that is used as `dyn` may need a boxed one.
            let stream = if boxed { "BoxStream<'_, " } else { "impl Stream<Item = " };
            format!(
                "the lock would be given back as soon as this stream is made: write `fn {name}(…) -> \
                 {stream}Result<_, E>>`, which holds it until the stream ends, or lock in a function \
                 of its own what makes the stream"
            )
        }
        Lazy::Future if is_async || awaited.is_some() => {
            "the lock would be given back as soon as this \
             future is made: await it in the body, and return what it yields"
                .to_owned()
        }
        Lazy::Future => format!(
            "the lock would be given back as soon as this future is made: write `async fn {name}`"
        ),
        Lazy::Iterator => {
            "the lock would be given back before this iterator has yielded anything: \
             collect its items in the body, and return a `Vec`"
                .to_owned()
        }
    };
    Err(Error::new_spanned(lazy, sentence))
}

/// The first part of a value that runs later.
fn lazy_part(ty: &Type) -> Option<(&Type, Lazy)> {
    let ty = unwrapped(ty);
    if let Some(StreamShape { boxed, .. }) = StreamShape::of_type(ty) {
        return Some((ty, Lazy::Stream { boxed }));
    }
    match ty {
        Type::ImplTrait(opaque) => bounded(&opaque.bounds).map(|kind| (ty, kind)),
        Type::TraitObject(object) => bounded(&object.bounds).map(|kind| (ty, kind)),
        Type::Tuple(tuple) => tuple.elems.iter().find_map(lazy_part),
        Type::Array(array) => lazy_part(&array.elem),
        Type::Path(path) => {
            let last = path.path.segments.last()?;
            if is_alias(last) {
                return Some((ty, Lazy::Future));
            }
            if let Some(pinned) = the_argument_of(last, "Pin") {
                return lazy_part(pinned);
            }
            let owner = OWNERS.iter().any(|owner| last.ident == owner);
            owner.then(|| argument(last)).flatten().and_then(lazy_part)
        }
        _ => None,
    }
}

/// What the bounds of an `impl` or `dyn` type make of it.
fn bounded(bounds: &Punctuated<TypeParamBound, Token![+]>) -> Option<Lazy> {
    bounds.iter().find_map(|bound| {
        let TypeParamBound::Trait(bound) = bound else {
            return None;
        };
        let name = bound.path.segments.last()?.ident.to_string();
        match name.as_str() {
            "Future" => Some(Lazy::Future),
            "Stream" => Some(Lazy::Stream { boxed: false }),
            // What only becomes an iterator has its items already.
            "IntoIterator" => None,
            _ => name.ends_with("Iterator").then_some(Lazy::Iterator),
        }
    })
}
