//! `key = expression`: taken as it is. Durations by expression, and below a second.
use std::time::Duration;
use lockattr::Error;
const TTL: Duration = Duration::from_secs(20);
/// Renames a report.
pub async fn rename(old: String, new: String) -> Result<String, Error> {
    ::lockattr::__private::register! {
        "::rename", ["format ! (\"report:{}\" , old . to_lowercase ())"], "ttl" = "TTL",
        "wait" = "\"1s 500ms\"", "retry_delay" = "\"250us\""
    }
    return {
        let lockattr_call = ::lockattr::__private::Call::new(
            ::core::concat!(::core::module_path!(), "::rename"),
            ::lockattr::__private::KeyBuilder::new()
                .verbatim(&(format!("report:{}", old.to_lowercase()))),
            &::lockattr::LockOptions::new()
                .template("format ! (\"report:{}\" , old . to_lowercase ())")
                .ttl(TTL)
                .retry_delay(::core::time::Duration::new(0, 250000))
                .wait(::core::time::Duration::from_millis(1500)),
        );
        ::lockattr::__private::run(
                lockattr_call.begin(),
                async move {
                    #[allow(clippy::shadow_same, unused_variables)]
                    let old = old;
                    #[allow(clippy::shadow_same)]
                    let new = new;
                    #[allow(unreachable_code, clippy::type_complexity)]
                    if false {
                        let lockattr_output: Result<String, Error> = loop {};
                        return lockattr_output;
                    }
                    {
                        drop(old);
                        Ok(new)
                    }
                },
                ::lockattr::__private::reject::<Result<String, Error>>,
            )
            .await
    };
}
