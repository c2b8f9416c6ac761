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
            &const { ::lockattr::LockOptions::new().template("product:<id>") },
        );
        match lockattr_call.enter_blocking() {
            ::core::result::Result::Ok(lockattr_entry) => {
                let lockattr_outcome = ::lockattr::__private::run_blocking(
                    lockattr_entry,
                    move || {
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
                    },
                    ::lockattr::__private::reject::<Result<u32, Error>>,
                );
                lockattr_outcome
            }
            ::core::result::Result::Err(
                lockattr_error,
            ) if ::lockattr::__private::is_busy(&lockattr_error) => {
                #[allow(clippy::type_complexity)]
                let lockattr_value: Result<u32, Error> = Ok(0);
                lockattr_value
            }
            ::core::result::Result::Err(lockattr_error) => {
                ::lockattr::__private::reject::<Result<u32, Error>>(lockattr_error)
            }
        }
    };
}
