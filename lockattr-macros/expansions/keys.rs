//! `keys`: each as `key` would be, in one call.
use lockattr::Error;
/// Moves money.
pub async fn transfer(from: u64, to: Account, day: u32) -> Result<u64, Error> {
    ::lockattr::__private::register! {
        "::transfer", ["account:<from>", "account:<to.id>", "format ! (\"day:{day}\")"],
        "ttl" = "\"5s\""
    }
    return {
        let lockattr_call = ::lockattr::__private::Call::all(
            ::core::concat!(::core::module_path!(), "::transfer"),
            [
                ::lockattr::__private::KeyBuilder::new()
                    .text("account:")
                    .placeholder(&(from), ::core::option::Option::None),
                ::lockattr::__private::KeyBuilder::new()
                    .text("account:")
                    .placeholder(&(to.id), ::core::option::Option::None),
                ::lockattr::__private::KeyBuilder::new()
                    .verbatim(&(format!("day:{day}"))),
            ],
            &const {
                ::lockattr::LockOptions::new()
                    .template(
                        ::core::concat!(
                            "account:<from>", ", ", "account:<to.id>", ", ",
                            "format ! (\"day:{day}\")"
                        ),
                    )
                    .ttl(::core::time::Duration::from_secs(5))
            },
        );
        ::lockattr::__private::run(
                lockattr_call.begin(),
                async move {
                    #[allow(clippy::shadow_same, unused_variables)]
                    let from = from;
                    #[allow(clippy::shadow_same, unused_variables)]
                    let to = to;
                    #[allow(clippy::shadow_same, unused_variables)]
                    let day = day;
                    #[allow(unreachable_code, clippy::type_complexity)]
                    if false {
                        let lockattr_output: Result<u64, Error> = loop {};
                        return lockattr_output;
                    }
                    { Ok(from + to.id) }
                },
                ::lockattr::__private::reject::<Result<u64, Error>>,
            )
            .await
    };
}
/// An account.
#[derive(Debug)]
pub struct Account {
    /// Its number.
    pub id: u64,
}
