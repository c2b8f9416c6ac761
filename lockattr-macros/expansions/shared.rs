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
            &const {
                ::lockattr::LockOptions::new()
                    .template("prices:<shop>")
                    .mode(::lockattr::Mode::Shared)
            },
        );
        ::lockattr::__private::run(
                lockattr_call.begin(),
                async move {
                    #[allow(clippy::shadow_same, unused_variables)]
                    let shop = shop;
                    #[allow(unreachable_code, clippy::type_complexity)]
                    if false {
                        let lockattr_output: Result<usize, Error> = loop {};
                        return lockattr_output;
                    }
                    { Ok(shop.len()) }
                },
                ::lockattr::__private::reject::<Result<usize, Error>>,
            )
            .await
    };
}
