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
            &const {
                ::lockattr::LockOptions::new()
                    .template("nightly:<night>")
                    .wait(::core::time::Duration::from_secs(0))
            },
        );
        ::lockattr::__private::run(
                lockattr_call.begin(),
                async move {
                    #[allow(clippy::shadow_same, unused_variables)]
                    let night = night;
                    #[allow(unreachable_code, clippy::type_complexity)]
                    if false {
                        let lockattr_output: Result<Option<usize>, Error> = loop {};
                        return lockattr_output;
                    }
                    { Ok(Some(night.len())) }
                },
                ::lockattr::__private::skip::<Result<Option<usize>, Error>>,
            )
            .await
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
            &const { ::lockattr::LockOptions::new().template("warm") },
        );
        ::lockattr::__private::run(
                lockattr_call.begin(),
                async move {
                    #[allow(unreachable_code, clippy::type_complexity)]
                    if false {
                        let lockattr_output: () = loop {};
                        return lockattr_output;
                    }
                    {}
                },
                ::lockattr::__private::skip::<()>,
            )
            .await
    };
}
