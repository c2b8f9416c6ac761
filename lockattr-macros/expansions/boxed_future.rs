//! A function that boxes its future itself, and returns early.
use std::future::{Future, ready};
use std::pin::Pin;
use lockattr::Error;
/// A future under another name.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
/// Counts.
#[derive(Debug)]
pub struct Counter(u64);
impl Counter {
    /// Adds `more`.
    pub fn add(
        &mut self,
        more: u64,
    ) -> Pin<Box<dyn Future<Output = Result<u64, Error>> + Send + '_>> {
        ::lockattr::__private::register! {
            "::add", ["counter:<self.0>"]
        }
        return {
            ::std::boxed::Box::pin(async move {
                let lockattr_call = ::lockattr::__private::Call::new(
                    ::core::concat!(::core::module_path!(), "::add"),
                    ::lockattr::__private::KeyBuilder::new()
                        .text("counter:")
                        .placeholder(&(self.0), ::core::option::Option::None),
                    &const {
                        ::lockattr::LockOptions::new().template("counter:<self.0>")
                    },
                );
                ::lockattr::__private::run(
                        lockattr_call.begin(),
                        async move {
                            #[allow(clippy::async_yields_async)]
                            let lockattr_future = async move {
                                let _ = &self;
                                #[allow(unreachable_code, clippy::type_complexity)]
                                if false {
                                    let lockattr_output: Pin<
                                        Box<dyn Future<Output = Result<u64, Error>> + Send + '_>,
                                    > = loop {};
                                    return lockattr_output;
                                }
                                {
                                    let count = &mut self.0;
                                    if more == 0 {
                                        return Box::pin(ready(Ok(*count)));
                                    }
                                    Box::pin(async move {
                                        *count += more;
                                        Ok(*count)
                                    })
                                }
                            }
                                .await;
                            lockattr_future.await
                        },
                        ::lockattr::__private::reject::<Result<u64, Error>>,
                    )
                    .await
            })
        };
    }
}
/// Half of it.
pub fn half(of: &u64) -> BoxFuture<'_, Result<u64, Error>> {
    ::lockattr::__private::register! {
        "::half", ["half:<of>"]
    }
    return {
        ::std::boxed::Box::pin(async move {
            let lockattr_call = ::lockattr::__private::Call::new(
                ::core::concat!(::core::module_path!(), "::half"),
                ::lockattr::__private::KeyBuilder::new()
                    .text("half:")
                    .placeholder(&(of), ::core::option::Option::None),
                &const { ::lockattr::LockOptions::new().template("half:<of>") },
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
                                let lockattr_output: BoxFuture<'_, Result<u64, Error>> = loop {};
                                return lockattr_output;
                            }
                            { Box::pin(ready(Ok(of / 2))) }
                        }
                            .await;
                        lockattr_future.await
                    },
                    ::lockattr::__private::reject::<
                        <BoxFuture<
                            '_,
                            Result<u64, Error>,
                        > as ::core::future::Future>::Output,
                    >,
                )
                .await
        })
    };
}
