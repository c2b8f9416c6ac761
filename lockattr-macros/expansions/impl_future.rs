//! A function that returns `impl Future`.
use std::future::Future;
use lockattr::Error;
/// Doubles it.
pub fn double(of: u64) -> impl Future<Output = Result<u64, Error>> + Send {
    ::lockattr::__private::register! {
        "::double", ["double:<of>"]
    }
    return {
        async move {
            let lockattr_call = ::lockattr::__private::Call::new(
                ::core::concat!(::core::module_path!(), "::double"),
                ::lockattr::__private::KeyBuilder::new()
                    .text("double:")
                    .placeholder(&(of), ::core::option::Option::None),
                &const { ::lockattr::LockOptions::new().template("double:<of>") },
            );
            ::lockattr::__private::run(
                    lockattr_call.begin(),
                    async move {
                        #[allow(clippy::async_yields_async)]
                        let lockattr_future = async move {
                            #[allow(clippy::shadow_same, unused_variables)]
                            let of = of;
                            #[allow(unreachable_code, clippy::type_complexity)]
                            if false {
                                let lockattr_output: _ = loop {};
                                return lockattr_output;
                            }
                            {
                                let double = of * 2;
                                async move { Ok(double) }
                            }
                        }
                            .await;
                        lockattr_future.await
                    },
                    ::lockattr::__private::reject::<Result<u64, Error>>,
                )
                .await
        }
    };
}
