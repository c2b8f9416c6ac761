//! `permits`: a semaphore, whose size is any expression.
use lockattr::Error;
/// Calls a partner that allows a few connections.
pub async fn call(connections: u32) -> Result<Option<u32>, Error> {
    ::lockattr::__private::register! {
        "::call", ["partner"], "permits" = "connections / 2", "on_busy" = "skip"
    }
    return {
        let lockattr_call = ::lockattr::__private::Call::new(
            ::core::concat!(::core::module_path!(), "::call"),
            ::lockattr::__private::KeyBuilder::new().text("partner"),
            &::lockattr::LockOptions::new().template("partner").permits(connections / 2),
        );
        ::lockattr::__private::run(
                lockattr_call.begin(),
                async move {
                    #[allow(clippy::shadow_same, unused_variables)]
                    let connections = connections;
                    #[allow(unreachable_code, clippy::type_complexity)]
                    if false {
                        let lockattr_output: Result<Option<u32>, Error> = loop {};
                        return lockattr_output;
                    }
                    { Ok(Some(connections)) }
                },
                ::lockattr::__private::skip::<Result<Option<u32>, Error>>,
            )
            .await
    };
}
