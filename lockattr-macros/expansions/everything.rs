//! Every option at once, as far as they go together.
use std::time::Duration;
use lockattr::{Error, LockManager};
/// An account.
#[derive(Debug)]
pub struct Account {
    id: u64,
    locks: LockManager,
}
impl Account {
    /// Pays out.
    #[must_use = "money"]
    #[allow(clippy::unused_self)]
    pub async fn pay_out(&mut self, currency: &str, patience: u8) -> Result<u64, Error> {
        ::lockattr::__private::register! {
            "::pay_out", ["bank<<{<self.id>}:<currency.trim_matches('>')>"], "ttl" =
            "\"1m30s\"", "retry" = "2 * 5", "retry_delay" = "\"150ms\"", "wait" =
            "Duration :: from_millis (u64 :: from (patience))", "renew" = "true",
            "max_hold" = "\"1h\"", "hold_at_least" = "\"1m\"", "on_busy" =
            "return (Ok (0))", "on_lost" = "cancel", "on_unavailable" = "error",
            "reentrant" = "patience > 0", "mode" = "exclusive", "release" = "background",
            "manager" = "& self . locks", "lease" = "lease", "crate" = ":: lockattr"
        }
        return {
            let lockattr_call = ::lockattr::__private::Call::new(
                    ::core::concat!(::core::module_path!(), "::pay_out"),
                    ::lockattr::__private::KeyBuilder::new()
                        .text("bank<{")
                        .placeholder(&(self.id), ::core::option::Option::Some('}'))
                        .text("}:")
                        .placeholder(
                            &(currency.trim_matches('>')),
                            ::core::option::Option::None,
                        ),
                    &::lockattr::LockOptions::new()
                        .template("bank<<{<self.id>}:<currency.trim_matches('>')>")
                        .ttl(::core::time::Duration::from_secs(90))
                        .retry(2 * 5)
                        .retry_delay(::core::time::Duration::from_millis(150))
                        .wait(Duration::from_millis(u64::from(patience)))
                        .renew(true)
                        .max_hold(::core::time::Duration::from_secs(3600))
                        .hold_at_least(::core::time::Duration::from_secs(60))
                        .on_lost(::lockattr::OnLost::Cancel)
                        .reentrant(patience > 0)
                        .mode(::lockattr::Mode::Exclusive)
                        .release(::lockattr::Release::Background),
                )
                .manager(&self.locks);
            match lockattr_call.enter().await {
                ::core::result::Result::Ok(lockattr_entry) => {
                    ::lockattr::__private::run(
                            lockattr_entry,
                            async move {
                                let _ = &self;
                                #[allow(clippy::shadow_same, unused_variables)]
                                let currency = currency;
                                #[allow(clippy::shadow_same, unused_variables)]
                                let patience = patience;
                                let lease: &::lockattr::Lease = &::lockattr::__private::lease();
                                #[allow(unreachable_code, clippy::type_complexity)]
                                if false {
                                    let lockattr_output: Result<u64, Error> = loop {};
                                    return lockattr_output;
                                }
                                { Ok(u64::from(lease.fencing_token()) + self.id) }
                            },
                            ::lockattr::__private::reject::<Result<u64, Error>>,
                        )
                        .await
                }
                ::core::result::Result::Err(
                    lockattr_error,
                ) if ::lockattr::__private::is_busy(&lockattr_error) => {
                    #[allow(clippy::type_complexity)]
                    let lockattr_value: Result<u64, Error> = Ok(0);
                    lockattr_value
                }
                ::core::result::Result::Err(lockattr_error) => {
                    ::lockattr::__private::reject::<Result<u64, Error>>(lockattr_error)
                }
            }
        };
    }
}
