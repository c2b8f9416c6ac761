//! Generic functions, `impl Trait` on both sides, named lifetimes, `unsafe`.

use std::fmt::Display;

use lockattr::Error;

/// Prints twice.
#[lockattr::distributed_lock(key = "print:<what>:<N>")]
pub async fn print<'a, T, const N: usize>(
    what: &'a T,
    times: impl Into<u64>,
) -> Result<(&'a T, impl Display), Error>
where
    T: Display + ?Sized,
{
    Ok((what, format!("{what}{}", times.into())))
}

/// Reads a byte.
///
/// # Safety
///
/// `byte` can be read as long as the slice.
#[lockattr::distributed_lock(key = "byte")]
pub async unsafe fn peek<'a>(byte: *const u8, _: &'a [u8]) -> Result<&'a u8, Error> {
    // SAFETY: the caller guarantees it.
    Ok(unsafe { &*byte })
}
