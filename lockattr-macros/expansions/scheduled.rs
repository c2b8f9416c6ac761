//! `hold_at_least`: the lock stays taken after a short body.
use lockattr::Error;
/// Runs once a night, on one node.
pub async fn nightly(night: &str) -> Result<Option<usize>, Error> {
    ::lockattr::__private::register! {
        "::nightly", ["nightly:<night>"], "wait" = "\"0s\"", "on_busy" = "skip",
        "hold_at_least" = "\"1m\""
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
                    .hold_at_least(::core::time::Duration::from_secs(60))
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
