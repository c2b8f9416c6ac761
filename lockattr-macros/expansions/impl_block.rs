//! A whole `impl`, with options for all of it.
use lockattr::{Error, LockManager};
/// What a customer is about to buy.
#[derive(Debug)]
pub struct Cart {
    id: u64,
    prices: Vec<u64>,
    locks: LockManager,
}
impl Cart {
    /// One more.
    pub async fn add(&mut self, price: u64) -> Result<(), Error> {
        ::lockattr::__private::register! {
            "::add", ["cart:<self.id>"], "ttl" = "\"5s\"", "manager" = "& self . locks"
        }
        return {
            let lockattr_call = ::lockattr::__private::Call::new(
                    ::core::concat!(::core::module_path!(), "::add"),
                    ::lockattr::__private::KeyBuilder::new()
                        .text("cart:")
                        .placeholder(&(self.id), ::core::option::Option::None),
                    &const {
                        ::lockattr::LockOptions::new()
                            .template("cart:<self.id>")
                            .ttl(::core::time::Duration::from_secs(5))
                    },
                )
                .manager(&self.locks);
            ::lockattr::__private::run(
                    lockattr_call.begin(),
                    async move {
                        let _ = &self;
                        #[allow(clippy::shadow_same)]
                        let price = price;
                        #[allow(unreachable_code, clippy::type_complexity)]
                        if false {
                            let lockattr_output: Result<(), Error> = loop {};
                            return lockattr_output;
                        }
                        {
                            self.prices.push(price);
                            Ok(())
                        }
                    },
                    ::lockattr::__private::reject::<Result<(), Error>>,
                )
                .await
        };
    }
    /// All of them.
    pub fn total(&self) -> u64 {
        self.prices.iter().sum()
    }
}
