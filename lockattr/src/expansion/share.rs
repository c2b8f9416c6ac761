//! A function whose result is shared with the callers that wait for it.

#[cfg(feature = "share")]
mod enabled;

#[cfg(feature = "share")]
pub use enabled::{Shareable, Sharing, enter_sharing};

/// What the attribute adds for `share_result`: nothing.
#[cfg(feature = "share")]
#[doc(hidden)]
#[macro_export]
macro_rules! __share {
    () => {};
}

/// Without the feature, a sentence instead of an unknown name.
#[cfg(not(feature = "share"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __share {
    () => {
        ::core::compile_error!(
            "`share_result` needs the feature `share` of lockattr: add it in `Cargo.toml`"
        );
    };
}
