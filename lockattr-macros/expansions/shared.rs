//! `mode`: many shared holders, or one exclusive one.
use lockattr::Error;
/// Reads the prices.
pub async fn report(shop: &str) -> Result<usize, Error> {
    ::lockattr::__private::register! {
        "::report", ["prices:<shop>"], "mode" = "shared"
    }
    return {
        let lockattr_call = ::lockattr::__private::Call::new(
            ::core::concat!(::core::module_path!(), "::report"),
            ::lockattr::__private::KeyBuilder::new()
                .text("prices:")
                .placeholder(&(shop), ::core::option::Option::None),
            ::lockattr::LockOptions::new()
                .template("prices:<shop>")
                .mode(::lockattr::Mode::Shared),
        );
        let lockattr_outcome = match ::lockattr::__private::enter(lockattr_call).await {
            ::core::result::Result::Ok(lockattr_entry) => {
                lockattr_entry
                    .run(async move {
                        #[allow(clippy::shadow_same, unused_variables)]
                        let shop = shop;
                        #[allow(unreachable_code, clippy::type_complexity)]
                        if false {
                            let lockattr_output: Result<usize, Error> = loop {};
                            return lockattr_output;
                        }
                        { Ok(shop.len()) }
                    })
                    .await
            }
            ::core::result::Result::Err(lockattr_error) => {
                ::core::result::Result::Err(lockattr_error)
            }
        };
        lockattr_outcome
            .unwrap_or_else(|lockattr_error| ::lockattr::__private::reject::<
                Result<usize, Error>,
            >(lockattr_error))
    };
}
