//! The annotated functions of the whole program, listed.
//!
//! Each attribute leaves a value in a section that the linker puts together, so that nothing runs
//! before `main` and nothing has to be called for it. Without the feature it leaves nothing.

#[cfg(feature = "registry")]
mod annotated;

#[cfg(feature = "registry")]
pub use annotated::{ANNOTATED, AnnotatedLock, annotated, registry};

/// What the attribute puts at the start of a function.
///
/// The lints of the user's crate take what stands in here for foreign, also `unsafe_code`: a static
/// in a section of the linker's is unsafe to them.
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
