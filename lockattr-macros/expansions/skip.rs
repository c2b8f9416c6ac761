//! `on_busy = skip`, with and without a return type.
use lockattr::Error;
/// Sends the night's invoices on one node.
pub async fn nightly(night: &str) -> Result<Option<usize>, Error> {
    ::lockattr::__private::register! {
        "::nightly", ["nightly:<night>"], "wait" = "\"0s\"", "on_busy" = "skip"
    }
    return {
        let lockattr_call = ::lockattr::__private::Call::new(
            ::core::concat!(::core::module_path!(), "::nightly"),
            ::lockattr::__private::KeyBuilder::new()
                .text("nightly:")
                .placeholder(&(night), ::core::option::Option::None),
            ::lockattr::LockOptions::new()
                .template("nightly:<night>")
                .wait(::core::time::Duration::from_secs(0)),
        );
        let lockattr_outcome = match ::lockattr::__private::enter(lockattr_call).await {
            ::core::result::Result::Ok(lockattr_entry) => {
                lockattr_entry
                    .run(async move {
                        #[allow(clippy::shadow_same, unused_variables)]
                        let night = night;
                        #[allow(unreachable_code, clippy::type_complexity)]
                        if false {
                            let lockattr_output: Result<Option<usize>, Error> = loop {};
                            return lockattr_output;
                        }
                        { Ok(Some(night.len())) }
                    })
                    .await
            }
            ::core::result::Result::Err(lockattr_error) => {
                ::core::result::Result::Err(lockattr_error)
            }
        };
        lockattr_outcome
            .unwrap_or_else(|lockattr_error| ::lockattr::__private::skip::<
                Result<Option<usize>, Error>,
            >(lockattr_error))
    };
}
/// Warms a cache on one node.
pub async fn warm() {
    ::lockattr::__private::register! {
        "::warm", ["warm"], "on_busy" = "skip"
    }
    return {
        let lockattr_call = ::lockattr::__private::Call::new(
            ::core::concat!(::core::module_path!(), "::warm"),
            ::lockattr::__private::KeyBuilder::new().text("warm"),
            ::lockattr::LockOptions::new().template("warm"),
        );
        let lockattr_outcome = match ::lockattr::__private::enter(lockattr_call).await {
            ::core::result::Result::Ok(lockattr_entry) => {
                lockattr_entry
                    .run(async move {
                        #[allow(unreachable_code, clippy::type_complexity)]
                        if false {
                            let lockattr_output: () = loop {};
                            return lockattr_output;
                        }
                        {}
                    })
                    .await
            }
            ::core::result::Result::Err(lockattr_error) => {
                ::core::result::Result::Err(lockattr_error)
            }
        };
        lockattr_outcome
            .unwrap_or_else(|lockattr_error| ::lockattr::__private::skip::<
                (),
            >(lockattr_error))
    };
}
