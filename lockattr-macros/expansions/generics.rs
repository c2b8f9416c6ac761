//! Generic functions, `impl Trait` on both sides, named lifetimes, `unsafe`.
use std::fmt::Display;
use lockattr::Error;
/// Prints twice.
pub async fn print<'a, T, const N: usize>(
    what: &'a T,
    times: impl Into<u64>,
) -> Result<(&'a T, impl Display), Error>
where
    T: Display + ?Sized,
{
    ::lockattr::__private::register! {
        "::print", ["print:<what>:<N>"]
    }
    return {
        let lockattr_call = ::lockattr::__private::Call::new(
            ::core::concat!(::core::module_path!(), "::print"),
            ::lockattr::__private::KeyBuilder::new()
                .text("print:")
                .placeholder(&(what), ::core::option::Option::Some(':'))
                .text(":")
                .placeholder(&(N), ::core::option::Option::None),
            &const { ::lockattr::LockOptions::new().template("print:<what>:<N>") },
        );
        ::lockattr::__private::run(
                lockattr_call.begin(),
                async move {
                    #[allow(clippy::shadow_same, unused_variables)]
                    let what = what;
                    #[allow(clippy::shadow_same)]
                    let times = times;
                    #[allow(unreachable_code, clippy::type_complexity)]
                    if false {
                        let lockattr_output: Result<(&'a T, _), Error> = loop {};
                        return lockattr_output;
                    }
                    { Ok((what, format!("{what}{}", times.into()))) }
                },
                ::lockattr::__private::reject::<Result<(&'a T, _), Error>>,
            )
            .await
    };
}
/// Reads a byte.
///
/// # Safety
///
/// `byte` can be read as long as the slice.
pub async unsafe fn peek<'a>(
    byte: *const u8,
    lockattr_arg1: &'a [u8],
) -> Result<&'a u8, Error> {
    ::lockattr::__private::register! {
        "::peek", ["byte"]
    }
    return {
        let lockattr_call = ::lockattr::__private::Call::new(
            ::core::concat!(::core::module_path!(), "::peek"),
            ::lockattr::__private::KeyBuilder::new().text("byte"),
            &const { ::lockattr::LockOptions::new().template("byte") },
        );
        ::lockattr::__private::run(
                lockattr_call.begin(),
                async move {
                    #[allow(clippy::shadow_same)]
                    let byte = byte;
                    #[allow(unused_mut)]
                    let mut lockattr_arg1 = lockattr_arg1;
                    let _ = lockattr_arg1;
                    #[allow(unreachable_code, clippy::type_complexity)]
                    if false {
                        let lockattr_output: Result<&'a u8, Error> = loop {};
                        return lockattr_output;
                    }
                    { Ok(unsafe { &*byte }) }
                },
                ::lockattr::__private::reject::<Result<&'a u8, Error>>,
            )
            .await
    };
}
