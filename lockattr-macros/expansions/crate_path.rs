//! `crate = path`: the runtime under another name.
use lockattr::Error;
/// A crate that hands `lockattr` on.
pub mod framework {
    pub use lockattr;
}
/// Locks through the framework.
pub async fn through_a_framework() -> Result<u64, Error> {
    self::framework::lockattr::__private::register! {
        "::through_a_framework", ["a"], "lease" = "lease", "on_lost" = "ignore", "crate"
        = "self :: framework :: lockattr"
    }
    return {
        let lockattr_call = self::framework::lockattr::__private::Call::new(
            ::core::concat!(::core::module_path!(), "::through_a_framework"),
            self::framework::lockattr::__private::KeyBuilder::new().text("a"),
            &const {
                self::framework::lockattr::LockOptions::new()
                    .template("a")
                    .on_lost(self::framework::lockattr::OnLost::Ignore)
            },
        );
        self::framework::lockattr::__private::run(
                lockattr_call.begin(),
                async move {
                    let lease: &self::framework::lockattr::Lease = &self::framework::lockattr::__private::lease();
                    #[allow(unreachable_code, clippy::type_complexity)]
                    if false {
                        let lockattr_output: Result<u64, Error> = loop {};
                        return lockattr_output;
                    }
                    { Ok(lease.fencing_token().into()) }
                },
                self::framework::lockattr::__private::reject::<Result<u64, Error>>,
            )
            .await
    };
}
