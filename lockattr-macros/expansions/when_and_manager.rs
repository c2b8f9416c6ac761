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
                        &const { ::lockattr::LockOptions::new().template("order:<id>") },
                    )
                    .manager(&self.locks)
            } else {
                ::lockattr::__private::Call::unlocked()
            };
            ::lockattr::__private::run(
                    lockattr_call.begin(),
                    async move {
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
                    },
                    ::lockattr::__private::reject::<Result<u32, Error>>,
                )
                .await
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
                &const { ::lockattr::LockOptions::new().template("warm") },
            )
            .manager_named("caches")
            .run_unlocked_if_unavailable();
        ::lockattr::__private::run(
                lockattr_call.begin(),
                async move {
                    #[allow(unreachable_code, clippy::type_complexity)]
                    if false {
                        let lockattr_output: Result<(), Error> = loop {};
                        return lockattr_output;
                    }
                    { Ok(()) }
                },
                ::lockattr::__private::reject::<Result<(), Error>>,
            )
            .await
    };
}
