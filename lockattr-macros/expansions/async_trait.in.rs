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
        Box<dyn ::core::future::Future<Output = Result<String, Error>> + ::core::marker::Send + 'async_trait>,
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
    #[lockattr::distributed_lock(key = "product:<id>:<name>")]
    fn sell<'life0, 'life1, 'async_trait>(
        &'life0 self,
        id: u64,
        name: &'life1 str,
    ) -> ::core::pin::Pin<
        Box<dyn ::core::future::Future<Output = Result<String, Error>> + ::core::marker::Send + 'async_trait>,
    >
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async move {
            if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<Result<String, Error>> {
                #[allow(unreachable_code)]
                return __ret;
            }
            let __self = self;
            let id = id;
            let __ret: Result<String, Error> = { Ok(format!("{__self:?} {id} {name}")) };
            #[allow(unreachable_code)]
            __ret
        })
    }
}
