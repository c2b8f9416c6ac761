//! The list of annotated functions of the whole program.
//!
//! Each attribute puts a value into a section that the linker collects, so nothing runs before
//! `main` and nothing has to be called. Without the feature, nothing is registered.

#[cfg(feature = "registry")]
mod annotated;
#[cfg(feature = "registry")]
mod check;

#[cfg(feature = "registry")]
pub use annotated::{ANNOTATED, AnnotatedLock, annotated, registry};

/// What the attribute adds at the start of a function.
///
/// The lints of the user's crate treat this code as foreign. That includes `unsafe_code`, which
/// would report a static in a section of the linker.
#[cfg(feature = "registry")]
#[doc(hidden)]
#[macro_export]
macro_rules! __register {
    ($function:literal, [$first:expr $(, $rest:expr)*] $(, $option:literal = $value:literal)*) => {
        const _: () = {
            #[$crate::__private::linkme::distributed_slice($crate::__private::ANNOTATED)]
            #[linkme(crate = $crate::__private::linkme)]
            static LOCK: $crate::AnnotatedLock = $crate::__private::annotated(
                ::core::concat!($first $(, ", ", $rest)*),
                &[$first $(, $rest)*],
                &[$(($option, $value)),*],
                ::core::concat!(::core::module_path!(), $function),
                (::core::file!(), ::core::line!()),
            );
        };
    };
}

/// Nothing: the feature `registry` is off.
#[cfg(not(feature = "registry"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __register {
    ($($what:tt)*) => {};
}
