//! What happens at the end: `on_lost` and `release`.
use lockattr::Error;
/// Imports in chunks.
pub async fn import() -> Result<u32, Error> {
    ::lockattr::__private::register! {
        "::import", ["import"], "max_hold" = "\"5m\"", "on_lost" = "error", "release" =
        "background"
    }
    return {
        let lockattr_call = ::lockattr::__private::Call::new(
            ::core::concat!(::core::module_path!(), "::import"),
            ::lockattr::__private::KeyBuilder::new().text("import"),
            &const {
                ::lockattr::LockOptions::new()
                    .template("import")
                    .max_hold(::core::time::Duration::from_secs(300))
                    .on_lost(::lockattr::OnLost::Error)
                    .release(::lockattr::Release::Background)
            },
        );
        ::lockattr::__private::run(
                lockattr_call.begin(),
                async move {
                    #[allow(unreachable_code, clippy::type_complexity)]
                    if false {
                        let lockattr_output: Result<u32, Error> = loop {};
                        return lockattr_output;
                    }
                    { Ok(4) }
                },
                ::lockattr::__private::reject::<Result<u32, Error>>,
            )
            .await
    };
}
/// Imports again.
pub async fn import_again() -> Result<u32, Error> {
    ::lockattr::__private::register! {
        "::import_again", ["import"], "renew" = "false", "reentrant" = "false", "on_lost"
        = "ignore", "release" = "await"
    }
    return {
        let lockattr_call = ::lockattr::__private::Call::new(
            ::core::concat!(::core::module_path!(), "::import_again"),
            ::lockattr::__private::KeyBuilder::new().text("import"),
            &const {
                ::lockattr::LockOptions::new()
                    .template("import")
                    .renew(false)
                    .on_lost(::lockattr::OnLost::Ignore)
                    .reentrant(false)
                    .release(::lockattr::Release::Await)
            },
        );
        ::lockattr::__private::run(
                lockattr_call.begin(),
                async move {
                    #[allow(unreachable_code, clippy::type_complexity)]
                    if false {
                        let lockattr_output: Result<u32, Error> = loop {};
                        return lockattr_output;
                    }
                    { Ok(4) }
                },
                ::lockattr::__private::reject::<Result<u32, Error>>,
            )
            .await
    };
}
