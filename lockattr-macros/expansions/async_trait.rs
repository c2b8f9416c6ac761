//! What `#[async_trait]` hands off: it stands on the `impl` and comes first.
use lockattr::Error;
/// A shop.
pub trait Shop {
    /// Sells.
    fn sell<'life0, 'life1, 'async_trait>(
        &'life0 self,
        id: u64,
        name: &'life1 str,
    ) -> ::core::pin::Pin<
        Box<
            dyn ::core::future::Future<
                Output = Result<String, Error>,
            > + ::core::marker::Send + 'async_trait,
        >,
    >
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait;
}
/// A shop on the web.
#[derive(Debug)]
pub struct WebShop;
impl Shop for WebShop {
    fn sell<'life0, 'life1, 'async_trait>(
        &'life0 self,
        id: u64,
        name: &'life1 str,
    ) -> ::core::pin::Pin<
        Box<
            dyn ::core::future::Future<
                Output = Result<String, Error>,
            > + ::core::marker::Send + 'async_trait,
        >,
    >
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait,
    {
        ::lockattr::__private::register! {
            "::sell", ["product:<id>:<name>"]
        }
        return {
            ::std::boxed::Box::pin(async move {
                let lockattr_call = ::lockattr::__private::Call::new(
                    ::core::concat!(::core::module_path!(), "::sell"),
                    ::lockattr::__private::KeyBuilder::new()
                        .text("product:")
                        .placeholder(&(id), ::core::option::Option::Some(':'))
                        .text(":")
                        .placeholder(&(name), ::core::option::Option::None),
                    &const {
                        ::lockattr::LockOptions::new().template("product:<id>:<name>")
                    },
                );
                ::lockattr::__private::run(
                        lockattr_call.begin(),
                        async move {
                            #[allow(clippy::async_yields_async)]
                            let lockattr_future = async move {
                                #[allow(clippy::shadow_same, unused_variables)]
                                let id = id;
                                #[allow(clippy::shadow_same, unused_variables)]
                                let name = name;
                                #[allow(unreachable_code, clippy::type_complexity)]
                                if false {
                                    let lockattr_output: ::core::pin::Pin<
                                        Box<
                                            dyn ::core::future::Future<
                                                Output = Result<String, Error>,
                                            > + ::core::marker::Send + 'async_trait,
                                        >,
                                    > = loop {};
                                    return lockattr_output;
                                }
                                {
                                    Box::pin(async move {
                                        if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<
                                            Result<String, Error>,
                                        > {
                                            #[allow(unreachable_code)] return __ret;
                                        }
                                        let __self = self;
                                        let id = id;
                                        let _ = &id;
                                        let __ret: Result<String, Error> = {
                                            Ok(format!("{__self:?} {id} {name}"))
                                        };
                                        #[allow(unreachable_code)] __ret
                                    })
                                }
                            }
                                .await;
                            lockattr_future.await
                        },
                        ::lockattr::__private::reject::<Result<String, Error>>,
                    )
                    .await
            })
        };
    }
}
