//! Two attributes: the lower one is expanded last, so its lock is taken first.
use lockattr::Error;
/// Moves money between two accounts.
pub async fn transfer(from: u64, to: u64) -> Result<u64, Error> {
    ::lockattr::__private::register! {
        "::transfer", ["account:<from>"]
    }
    return {
        let lockattr_call = ::lockattr::__private::Call::new(
            ::core::concat!(::core::module_path!(), "::transfer"),
            ::lockattr::__private::KeyBuilder::new()
                .text("account:")
                .placeholder(&(from), ::core::option::Option::None),
            &const { ::lockattr::LockOptions::new().template("account:<from>") },
        );
        ::lockattr::__private::run(
                lockattr_call.begin(),
                async move {
                    #[allow(clippy::shadow_same, unused_variables)]
                    let from = from;
                    #[allow(clippy::shadow_same)]
                    let to = to;
                    #[allow(unreachable_code, clippy::type_complexity)]
                    if false {
                        let lockattr_output: Result<u64, Error> = loop {};
                        return lockattr_output;
                    }
                    {
                        ::lockattr::__private::register! {
                            "::transfer", ["account:<to>"]
                        }
                        return {
                            let lockattr_call = ::lockattr::__private::Call::new(
                                ::core::concat!(::core::module_path!(), "::transfer"),
                                ::lockattr::__private::KeyBuilder::new()
                                    .text("account:")
                                    .placeholder(&(to), ::core::option::Option::None),
                                &const {
                                    ::lockattr::LockOptions::new().template("account:<to>")
                                },
                            );
                            ::lockattr::__private::run(
                                    lockattr_call.begin(),
                                    async move {
                                        #[allow(clippy::shadow_same, unused_variables)]
                                        let from = from;
                                        #[allow(clippy::shadow_same, unused_variables)]
                                        let to = to;
                                        #[allow(unreachable_code, clippy::type_complexity)]
                                        if false {
                                            let lockattr_output: Result<u64, Error> = loop {};
                                            return lockattr_output;
                                        }
                                        { Ok(from + to) }
                                    },
                                    ::lockattr::__private::reject::<Result<u64, Error>>,
                                )
                                .await
                        };
                    }
                },
                ::lockattr::__private::reject::<Result<u64, Error>>,
            )
            .await
    };
}
