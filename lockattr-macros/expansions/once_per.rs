//! `once_per` and `once_for`: after a body that ended `Ok`, the key is done.
use lockattr::Error;
/// Runs once in a period.
pub async fn invoices() -> Result<Option<usize>, Error> {
    ::lockattr::__private::register! {
        "::invoices", ["invoices"], "once_per" = "\"22h\"", "wait" = "\"0s\"", "on_busy"
        = "skip"
    }
    return {
        let lockattr_call = ::lockattr::__private::Call::new(
                ::core::concat!(::core::module_path!(), "::invoices"),
                ::lockattr::__private::KeyBuilder::new().text("invoices"),
                &const {
                    ::lockattr::LockOptions::new()
                        .template("invoices")
                        .wait(::core::time::Duration::from_secs(0))
                },
            )
            .once_per(::core::time::Duration::from_secs(79200));
        ::lockattr::__private::run_once(
                lockattr_call.begin(),
                async move {
                    #[allow(unreachable_code, clippy::type_complexity)]
                    if false {
                        let lockattr_output: Result<Option<usize>, Error> = loop {};
                        return lockattr_output;
                    }
                    { Ok(Some(1200)) }
                },
                ::lockattr::__private::skip::<Result<Option<usize>, Error>>,
            )
            .await
    };
}
/// Runs once for a night.
pub fn report(night: &str) -> Result<usize, Error> {
    ::lockattr::__private::register! {
        "::report", ["report"], "once_for" = "\"<night>\""
    }
    return {
        let lockattr_call = ::lockattr::__private::Call::new(
                ::core::concat!(::core::module_path!(), "::report"),
                ::lockattr::__private::KeyBuilder::new().text("report"),
                &const { ::lockattr::LockOptions::new().template("report") },
            )
            .once_for(
                ::lockattr::__private::KeyBuilder::new()
                    .placeholder(&(night), ::core::option::Option::None),
            );
        {
            let lockattr_outcome = ::lockattr::__private::run_once_blocking(
                lockattr_call.begin_blocking(),
                move || {
                    #[allow(clippy::shadow_same, unused_variables)]
                    let night = night;
                    #[allow(unreachable_code, clippy::type_complexity)]
                    if false {
                        let lockattr_output: Result<usize, Error> = loop {};
                        return lockattr_output;
                    }
                    { Ok(night.len()) }
                },
                ::lockattr::__private::reject::<Result<usize, Error>>,
            );
            lockattr_outcome
        }
    };
}
