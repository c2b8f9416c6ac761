//! The attribute of the README.
/// What the shop says of a failed order.
#[derive(Debug)]
pub struct OrderError;
impl From<lockattr::Error> for OrderError {
    fn from(_: lockattr::Error) -> Self {
        Self
    }
}
/// Takes `quantity` off the shelf.
pub async fn deduct(id: u64, quantity: u32) -> Result<(), OrderError> {
    ::lockattr::__private::register! {
        "::deduct", ["product:<id>"], "ttl" = "\"10s\"", "retry" = "10"
    }
    return {
        let lockattr_call = ::lockattr::__private::Call::new(
            ::core::concat!(::core::module_path!(), "::deduct"),
            ::lockattr::__private::KeyBuilder::new()
                .text("product:")
                .placeholder(&(id), ::core::option::Option::None),
            &const {
                ::lockattr::LockOptions::new()
                    .template("product:<id>")
                    .ttl(::core::time::Duration::from_secs(10))
                    .retry(10)
            },
        );
        ::lockattr::__private::run(
                lockattr_call.begin(),
                async move {
                    #[allow(clippy::shadow_same, unused_variables)]
                    let id = id;
                    #[allow(clippy::shadow_same)]
                    let quantity = quantity;
                    #[allow(unreachable_code, clippy::type_complexity)]
                    if false {
                        let lockattr_output: Result<(), OrderError> = loop {};
                        return lockattr_output;
                    }
                    {
                        if quantity == 0 {
                            return Err(OrderError);
                        }
                        Ok(())
                    }
                },
                ::lockattr::__private::reject::<Result<(), OrderError>>,
            )
            .await
    };
}
