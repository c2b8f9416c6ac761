//! `when`, both ways to choose a `manager`, and `on_unavailable`.
use lockattr::{Error, LockManager};
/// Orders and their locks.
#[derive(Debug)]
pub struct Orders {
    locks: LockManager,
}
impl Orders {
    /// Sells, under a lock if there is anything to sell.
    pub async fn sell(&self, id: u64, quantity: u32) -> Result<u32, Error> {
        ::lockattr::__private::register! {
            "::sell", ["order:<id>"], "when" = "quantity > 0", "manager" =
            "& self . locks"
        }
        return {
            let lockattr_when: ::core::primitive::bool = quantity > 0;
            let lockattr_call = if lockattr_when {
                ::lockattr::__private::Call::new(
                        ::core::concat!(::core::module_path!(), "::sell"),
                        ::lockattr::__private::KeyBuilder::new()
                            .text("order:")
                            .placeholder(&(id), ::core::option::Option::None),
                        ::lockattr::LockOptions::new().template("order:<id>"),
                    )
                    .manager(&self.locks)
            } else {
                ::lockattr::__private::Call::unlocked()
            };
            let lockattr_outcome = match ::lockattr::__private::enter(lockattr_call)
                .await
            {
                ::core::result::Result::Ok(lockattr_entry) => {
                    lockattr_entry
                        .run(async move {
                            let _ = &self;
                            #[allow(clippy::shadow_same, unused_variables)]
                            let id = id;
                            #[allow(clippy::shadow_same, unused_variables)]
                            let quantity = quantity;
                            #[allow(unreachable_code, clippy::type_complexity)]
                            if false {
                                let lockattr_output: Result<u32, Error> = loop {};
                                return lockattr_output;
                            }
                            { Ok(quantity) }
                        })
                        .await
                }
                ::core::result::Result::Err(lockattr_error) => {
                    ::core::result::Result::Err(lockattr_error)
                }
            };
            lockattr_outcome
                .unwrap_or_else(|lockattr_error| ::lockattr::__private::reject::<
                    Result<u32, Error>,
                >(lockattr_error))
        };
    }
}
/// Warms a cache, twice rather than never.
pub async fn warm() -> Result<(), Error> {
    ::lockattr::__private::register! {
        "::warm", ["warm"], "manager" = "\"caches\"", "on_unavailable" = "run_unlocked"
    }
    return {
        let lockattr_call = ::lockattr::__private::Call::new(
                ::core::concat!(::core::module_path!(), "::warm"),
                ::lockattr::__private::KeyBuilder::new().text("warm"),
                ::lockattr::LockOptions::new().template("warm"),
            )
            .manager_named("caches")
            .run_unlocked_if_unavailable();
        let lockattr_outcome = match ::lockattr::__private::enter(lockattr_call).await {
            ::core::result::Result::Ok(lockattr_entry) => {
                lockattr_entry
                    .run(async move {
                        #[allow(unreachable_code, clippy::type_complexity)]
                        if false {
                            let lockattr_output: Result<(), Error> = loop {};
                            return lockattr_output;
                        }
                        { Ok(()) }
                    })
                    .await
            }
            ::core::result::Result::Err(lockattr_error) => {
                ::core::result::Result::Err(lockattr_error)
            }
        };
        lockattr_outcome
            .unwrap_or_else(|lockattr_error| ::lockattr::__private::reject::<
                Result<(), Error>,
            >(lockattr_error))
    };
}
