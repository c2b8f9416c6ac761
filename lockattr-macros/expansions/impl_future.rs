//! A function that returns `impl Future`.
use std::future::Future;
use lockattr::Error;
/// Doubles it.
pub fn double(of: u64) -> impl Future<Output = Result<u64, Error>> + Send {
    ::lockattr::__private::register! {
        "::double", ["double:<of>"]
    }
    async move {
        let lockattr_call = ::lockattr::__private::Call::new(
            ::core::concat!(::core::module_path!(), "::double"),
            ::lockattr::__private::KeyBuilder::new()
                .text("double:")
                .placeholder(&(of), ::core::option::Option::None),
            ::lockattr::LockOptions::new().template("double:<of>"),
        );
        let outcome = match ::lockattr::__private::enter(lockattr_call).await {
            ::core::result::Result::Ok(lockattr_entry) => {
                lockattr_entry
                    .run(async move {
                        #[allow(clippy::async_yields_async)]
                        let future = async move {
                            #[allow(unused_variables)]
                            let of = of;
                            #[allow(unreachable_code)]
                            if false {
                                let output: _ = loop {};
                                return output;
                            }
                            {
                                let double = of * 2;
                                async move { Ok(double) }
                            }
                        }
                            .await;
                        future.await
                    })
                    .await
            }
            ::core::result::Result::Err(error) => ::core::result::Result::Err(error),
        };
        outcome
            .unwrap_or_else(|error| ::lockattr::__private::reject::<
                Result<u64, Error>,
            >(error))
    }
}
