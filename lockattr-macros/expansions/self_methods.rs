//! Methods, by every kind of `self`.
use std::sync::Arc;
use lockattr::Error;
/// A shop in a region.
#[derive(Debug)]
pub struct Shop {
    region: String,
    orders: Vec<u64>,
}
impl Shop {
    /// Looks at the last order.
    pub async fn last(&self) -> Result<Option<&u64>, Error> {
        ::lockattr::__private::register! {
            "::last", ["shop:<self.region>"]
        }
        return {
            let lockattr_call = ::lockattr::__private::Call::new(
                ::core::concat!(::core::module_path!(), "::last"),
                ::lockattr::__private::KeyBuilder::new()
                    .text("shop:")
                    .placeholder(&(self.region), ::core::option::Option::None),
                &const { ::lockattr::LockOptions::new().template("shop:<self.region>") },
            );
            ::lockattr::__private::run(
                    lockattr_call.begin(),
                    async move {
                        let _ = &self;
                        #[allow(unreachable_code, clippy::type_complexity)]
                        if false {
                            let lockattr_output: Result<Option<&u64>, Error> = loop {};
                            return lockattr_output;
                        }
                        { Ok(self.orders.last()) }
                    },
                    ::lockattr::__private::reject::<Result<Option<&u64>, Error>>,
                )
                .await
        };
    }
    /// Adds an order.
    pub async fn add(&mut self, order: u64) -> Result<&mut Vec<u64>, Error> {
        ::lockattr::__private::register! {
            "::add", ["shop:<self.region>:<order>"]
        }
        return {
            let lockattr_call = ::lockattr::__private::Call::new(
                ::core::concat!(::core::module_path!(), "::add"),
                ::lockattr::__private::KeyBuilder::new()
                    .text("shop:")
                    .placeholder(&(self.region), ::core::option::Option::Some(':'))
                    .text(":")
                    .placeholder(&(order), ::core::option::Option::None),
                &const {
                    ::lockattr::LockOptions::new().template("shop:<self.region>:<order>")
                },
            );
            ::lockattr::__private::run(
                    lockattr_call.begin(),
                    async move {
                        let _ = &self;
                        #[allow(clippy::shadow_same, unused_variables)]
                        let order = order;
                        #[allow(unreachable_code, clippy::type_complexity)]
                        if false {
                            let lockattr_output: Result<&mut Vec<u64>, Error> = loop {};
                            return lockattr_output;
                        }
                        {
                            self.orders.push(order);
                            Ok(&mut self.orders)
                        }
                    },
                    ::lockattr::__private::reject::<Result<&mut Vec<u64>, Error>>,
                )
                .await
        };
    }
    /// Closes the shop.
    pub(crate) async fn close(self: Arc<Self>) -> Result<Arc<Self>, Error> {
        ::lockattr::__private::register! {
            "::close", ["shop:<self.region>"]
        }
        return {
            let lockattr_call = ::lockattr::__private::Call::new(
                ::core::concat!(::core::module_path!(), "::close"),
                ::lockattr::__private::KeyBuilder::new()
                    .text("shop:")
                    .placeholder(&(self.region), ::core::option::Option::None),
                &const { ::lockattr::LockOptions::new().template("shop:<self.region>") },
            );
            ::lockattr::__private::run(
                    lockattr_call.begin(),
                    async move {
                        let _ = &self;
                        #[allow(unreachable_code, clippy::type_complexity)]
                        if false {
                            let lockattr_output: Result<Arc<Self>, Error> = loop {};
                            return lockattr_output;
                        }
                        { Ok(self) }
                    },
                    ::lockattr::__private::reject::<Result<Arc<Self>, Error>>,
                )
                .await
        };
    }
}
