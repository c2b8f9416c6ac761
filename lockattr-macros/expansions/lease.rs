//! `lease = name`: the body sees its lease.
use lockattr::Error;
/// Writes an invoice.
pub async fn write(number: u64) -> Result<u64, Error> {
    ::lockattr::__private::register! {
        "::write", ["invoice:<number>"], "lease" = "held"
    }
    return {
        let lockattr_call = ::lockattr::__private::Call::new(
            ::core::concat!(::core::module_path!(), "::write"),
            ::lockattr::__private::KeyBuilder::new()
                .text("invoice:")
                .placeholder(&(number), ::core::option::Option::None),
            &const { ::lockattr::LockOptions::new().template("invoice:<number>") },
        );
        ::lockattr::__private::run(
                lockattr_call.begin(),
                async move {
                    #[allow(clippy::shadow_same, unused_variables)]
                    let number = number;
                    let held: &::lockattr::Lease = &::lockattr::__private::lease();
                    #[allow(unreachable_code, clippy::type_complexity)]
                    if false {
                        let lockattr_output: Result<u64, Error> = loop {};
                        return lockattr_output;
                    }
                    {
                        held.ensure_held()?;
                        Ok(number + u64::from(held.fencing_token()))
                    }
                },
                ::lockattr::__private::reject::<Result<u64, Error>>,
            )
            .await
    };
}
