//! `mode`: many shared holders, or one exclusive one.
use lockattr::Error;
/// Reads the prices.
pub async fn report(shop: &str) -> Result<usize, Error> {
    ::lockattr::__private::register! {
        "::report", ["prices:<shop>"], "mode" = "shared"
    }
    let lockattr_call = ::lockattr::__private::Call::new(
        ::core::concat!(::core::module_path!(), "::report"),
        ::lockattr::__private::KeyBuilder::new()
            .text("prices:")
            .placeholder(&(shop), ::core::option::Option::None),
        ::lockattr::LockOptions::new()
            .template("prices:<shop>")
            .mode(::lockattr::Mode::Shared),
    );
    let outcome = match ::lockattr::__private::enter(lockattr_call).await {
        ::core::result::Result::Ok(lockattr_entry) => {
            lockattr_entry
                .run(async move {
                    #[allow(unused_variables)]
                    let shop = shop;
                    #[allow(unreachable_code)]
                    if false {
                        let output: Result<usize, Error> = loop {};
                        return output;
                    }
                    { Ok(shop.len()) }
                })
                .await
        }
        ::core::result::Result::Err(error) => ::core::result::Result::Err(error),
    };
    outcome
        .unwrap_or_else(|error| ::lockattr::__private::reject::<
            Result<usize, Error>,
        >(error))
}
