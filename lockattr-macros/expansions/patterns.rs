//! Patterns among the parameters.
use lockattr::Error;
/// An order.
#[derive(Debug)]
pub struct Order {
    customer: u64,
    items: [u32; 2],
}
/// Adds up an order.
pub async fn total(
    Order { customer, items }: Order,
    (left, right): (u32, u32),
    #[allow(unused_mut)]
    mut sums: Vec<u32>,
    lockattr_arg3: &str,
) -> Result<Vec<u32>, Error> {
    ::lockattr::__private::register! {
        "::total", ["{<customer>}:<items[0]>:<left + right>"]
    }
    return {
        let lockattr_call = ::lockattr::__private::Call::new(
            ::core::concat!(::core::module_path!(), "::total"),
            ::lockattr::__private::KeyBuilder::new()
                .text("{")
                .placeholder(&(customer), ::core::option::Option::Some('}'))
                .text("}:")
                .placeholder(&(items[0]), ::core::option::Option::Some(':'))
                .text(":")
                .placeholder(&(left + right), ::core::option::Option::None),
            &const {
                ::lockattr::LockOptions::new()
                    .template("{<customer>}:<items[0]>:<left + right>")
            },
        );
        ::lockattr::__private::run(
                lockattr_call.begin(),
                async move {
                    #[allow(clippy::shadow_same, unused_variables)]
                    let customer = customer;
                    #[allow(clippy::shadow_same, unused_variables)]
                    let items = items;
                    #[allow(clippy::shadow_same, unused_variables)]
                    let left = left;
                    #[allow(clippy::shadow_same, unused_variables)]
                    let right = right;
                    #[allow(clippy::shadow_same)]
                    let mut sums = sums;
                    #[allow(unused_mut)]
                    let mut lockattr_arg3 = lockattr_arg3;
                    let _ = lockattr_arg3;
                    #[allow(unreachable_code, clippy::type_complexity)]
                    if false {
                        let lockattr_output: Result<Vec<u32>, Error> = loop {};
                        return lockattr_output;
                    }
                    {
                        sums.extend(items);
                        sums.push(left + right);
                        Ok(sums)
                    }
                },
                ::lockattr::__private::reject::<Result<Vec<u32>, Error>>,
            )
            .await
    };
}
