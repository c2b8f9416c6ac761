//! `on_busy = return(…)`: a value of the caller's own, over the parameters.
use lockattr::Error;
/// Refreshes a price, or keeps the old one.
pub async fn refresh(
    id: u64,
    old: String,
) -> Result<String, Box<dyn std::error::Error>> {
    ::lockattr::__private::register! {
        "::refresh", ["price:<id>"], "on_busy" = "return (Ok (old))"
    }
    return {
        let lockattr_call = ::lockattr::__private::Call::new(
            ::core::concat!(::core::module_path!(), "::refresh"),
            ::lockattr::__private::KeyBuilder::new()
                .text("price:")
                .placeholder(&(id), ::core::option::Option::None),
            &const { ::lockattr::LockOptions::new().template("price:<id>") },
        );
        match lockattr_call.enter().await {
            ::core::result::Result::Ok(lockattr_entry) => {
                ::lockattr::__private::run(
                        lockattr_entry,
                        async move {
                            #[allow(clippy::shadow_same, unused_variables)]
                            let id = id;
                            #[allow(clippy::shadow_same, unused_variables)]
                            let old = old;
                            #[allow(unreachable_code, clippy::type_complexity)]
                            if false {
                                let lockattr_output: Result<
                                    String,
                                    Box<dyn std::error::Error>,
                                > = loop {};
                                return lockattr_output;
                            }
                            {
                                if old.is_empty() {
                                    return Err(Box::new(Error::NoManager));
                                }
                                Ok(id.to_string())
                            }
                        },
                        ::lockattr::__private::reject::<
                            Result<String, Box<dyn std::error::Error>>,
                        >,
                    )
                    .await
            }
            ::core::result::Result::Err(
                lockattr_error,
            ) if ::lockattr::__private::is_busy(&lockattr_error) => {
                #[allow(clippy::type_complexity)]
                let lockattr_value: Result<String, Box<dyn std::error::Error>> = Ok(old);
                lockattr_value
            }
            ::core::result::Result::Err(lockattr_error) => {
                ::lockattr::__private::reject::<
                    Result<String, Box<dyn std::error::Error>>,
                >(lockattr_error)
            }
        }
    };
}
