//! Streams, by both kinds of return type.
use futures_util::stream::{self, BoxStream, Stream};
use lockattr::Error;
/// A desk in a region.
#[derive(Debug)]
pub struct Desk {
    region: String,
    rows: Vec<u32>,
}
impl Desk {
    /// All rows.
    pub fn rows(&self) -> impl Stream<Item = Result<u32, Error>> + Send {
        ::lockattr::__private::register! {
            "::rows", ["export:<self.region>"]
        }
        return {
            let lockattr_refuse = ::lockattr::__private::reject_item::<
                Result<u32, Error>,
            >;
            ::lockattr::__private::stream(
                async move {
                    let lockattr_call = ::lockattr::__private::Call::new(
                        ::core::concat!(::core::module_path!(), "::rows"),
                        ::lockattr::__private::KeyBuilder::new()
                            .text("export:")
                            .placeholder(&(self.region), ::core::option::Option::None),
                        &const {
                            ::lockattr::LockOptions::new()
                                .template("export:<self.region>")
                        },
                    );
                    match lockattr_call.enter().await {
                        ::core::result::Result::Ok(lockattr_entry) => {
                            ::core::result::Result::Ok(
                                lockattr_entry
                                    .stream(
                                        move || {
                                            #[allow(unreachable_code, clippy::type_complexity)]
                                            if false {
                                                let lockattr_output: _ = loop {};
                                                return lockattr_output;
                                            }
                                            { stream::iter(self.rows.iter().copied().map(Ok)) }
                                        },
                                        lockattr_refuse,
                                    ),
                            )
                        }
                        ::core::result::Result::Err(lockattr_error) => {
                            ::core::result::Result::Err(lockattr_error)
                        }
                    }
                },
                lockattr_refuse,
            )
        };
    }
}
/// Three of them.
pub fn ticks() -> BoxStream<'static, u32> {
    ::lockattr::__private::register! {
        "::ticks", ["ticks"], "on_busy" = "skip"
    }
    return {
        let lockattr_refuse = {
            #[allow(unused_imports)]
            use ::lockattr::__private::{SkippedWithRoom as _, SkippedWithout as _};
            (&::lockattr::__private::ItemsOf::<
                <BoxStream<'static, u32> as ::lockattr::__private::Stream>::Item,
            >::new())
                .skip()
        };
        ::std::boxed::Box::pin(
            ::lockattr::__private::stream(
                async move {
                    let lockattr_call = ::lockattr::__private::Call::new(
                        ::core::concat!(::core::module_path!(), "::ticks"),
                        ::lockattr::__private::KeyBuilder::new().text("ticks"),
                        &const { ::lockattr::LockOptions::new().template("ticks") },
                    );
                    match lockattr_call.enter().await {
                        ::core::result::Result::Ok(lockattr_entry) => {
                            ::core::result::Result::Ok(
                                lockattr_entry
                                    .stream(
                                        move || {
                                            #[allow(unreachable_code, clippy::type_complexity)]
                                            if false {
                                                let lockattr_output: BoxStream<'static, u32> = loop {};
                                                return lockattr_output;
                                            }
                                            { Box::pin(stream::iter(0..3)) }
                                        },
                                        lockattr_refuse,
                                    ),
                            )
                        }
                        ::core::result::Result::Err(lockattr_error) => {
                            ::core::result::Result::Err(lockattr_error)
                        }
                    }
                },
                lockattr_refuse,
            ),
        )
    };
}
/// The number of its lease, said by the stream itself; else zero.
pub fn leased() -> impl Stream<Item = Result<u64, Error>> {
    ::lockattr::__private::register! {
        "::leased", ["leased"], "lease" = "lease", "on_busy" =
        "return (stream :: iter (vec ! [Ok (0)]))"
    }
    return {
        let lockattr_refuse = ::lockattr::__private::reject_item::<Result<u64, Error>>;
        ::lockattr::__private::stream(
            async move {
                let lockattr_call = ::lockattr::__private::Call::new(
                    ::core::concat!(::core::module_path!(), "::leased"),
                    ::lockattr::__private::KeyBuilder::new().text("leased"),
                    &const { ::lockattr::LockOptions::new().template("leased") },
                );
                match lockattr_call.enter().await {
                    ::core::result::Result::Ok(lockattr_entry) => {
                        ::core::result::Result::Ok(
                            ::lockattr::__private::Either::Left(
                                lockattr_entry
                                    .stream(
                                        move || {
                                            let lease: ::lockattr::Lease = ::lockattr::__private::lease();
                                            #[allow(unreachable_code, clippy::type_complexity)]
                                            if false {
                                                let lockattr_output: _ = loop {};
                                                return lockattr_output;
                                            }
                                            {
                                                stream::once(async move {
                                                    lease.ensure_held().map(|()| lease.fencing_token().into())
                                                })
                                            }
                                        },
                                        lockattr_refuse,
                                    ),
                            ),
                        )
                    }
                    ::core::result::Result::Err(
                        lockattr_error,
                    ) if ::lockattr::__private::is_busy(&lockattr_error) => {
                        ::core::result::Result::Ok(
                            ::lockattr::__private::Either::Right(
                                stream::iter(vec![Ok(0)]),
                            ),
                        )
                    }
                    ::core::result::Result::Err(lockattr_error) => {
                        ::core::result::Result::Err(lockattr_error)
                    }
                }
            },
            lockattr_refuse,
        )
    };
}
