//! A plain function.
use lockattr::Error;
/// Takes one.
pub fn deduct(id: u64, stock: &mut u32) -> Result<u32, Error> {
    ::lockattr::__private::register! {
        "::deduct", ["product:<id>"], "on_busy" = "return (Ok (0))", "lease" = "lease"
    }
    return {
        let lockattr_call = ::lockattr::__private::Call::new(
            ::core::concat!(::core::module_path!(), "::deduct"),
            ::lockattr::__private::KeyBuilder::new()
                .text("product:")
                .placeholder(&(id), ::core::option::Option::None),
            ::lockattr::LockOptions::new().template("product:<id>"),
        );
        let lockattr_outcome = match ::lockattr::__private::enter_blocking(
            lockattr_call,
        ) {
            ::core::result::Result::Ok(lockattr_entry) => {
                lockattr_entry
                    .run_blocking(move || {
                        #[allow(clippy::shadow_same, unused_variables)]
                        let id = id;
                        #[allow(clippy::shadow_same)]
                        let stock = stock;
                        let lease: &::lockattr::Lease = &::lockattr::__private::lease();
                        #[allow(unreachable_code, clippy::type_complexity)]
                        if false {
                            let lockattr_output: Result<u32, Error> = loop {};
                            return lockattr_output;
                        }
                        {
                            *stock -= 1;
                            Ok(*stock)
                        }
                    })
            }
            ::core::result::Result::Err(
                lockattr_error,
            ) if ::lockattr::__private::is_busy(&lockattr_error) => {
                #[allow(clippy::type_complexity)]
                let lockattr_value: Result<u32, Error> = Ok(0);
                ::core::result::Result::Ok(lockattr_value)
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
