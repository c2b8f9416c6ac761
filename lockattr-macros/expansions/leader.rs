//! `lead`: the body runs once for each term.
use lockattr::Error;
/// A scheduler.
pub struct Scheduler {
    pub region: String,
}
impl Scheduler {
    /// Leads.
    pub async fn run(
        &self,
        #[allow(unused_mut)]
        mut rounds: u32,
        (name, _): (&str, u8),
    ) -> Result<usize, Error> {
        ::lockattr::__private::register! {
            "::run", ["scheduler:<self.region>"], "lead" = "true", "progress_within" =
            "\"30s\"", "term" = "term"
        }
        return {
            let lockattr_call = ::lockattr::__private::Call::new(
                ::core::concat!(::core::module_path!(), "::run"),
                ::lockattr::__private::KeyBuilder::new()
                    .text("scheduler:")
                    .placeholder(&(self.region), ::core::option::Option::None),
                &const {
                    ::lockattr::LockOptions::new()
                        .template("scheduler:<self.region>")
                        .progress_within(::core::time::Duration::from_secs(30))
                },
            );
            ::lockattr::__private::lead(
                    lockattr_call,
                    move |lockattr_term: ::lockattr::Term| {
                        let _ = &self;
                        #[allow(clippy::shadow_reuse)]
                        let mut rounds = ::lockattr::__private::for_this_term(&rounds);
                        #[allow(clippy::shadow_reuse)]
                        let name = ::lockattr::__private::for_this_term(&name);
                        async move {
                            let term: &::lockattr::Term = &lockattr_term;
                            #[allow(unreachable_code, clippy::type_complexity)]
                            if false {
                                let lockattr_output: Result<usize, Error> = loop {};
                                return lockattr_output;
                            }
                            {
                                while rounds > 0 {
                                    rounds -= 1;
                                    term.progress();
                                }
                                Ok(self.region.len() + name.len())
                            }
                        }
                    },
                )
                .await
                .unwrap_or_else(|lockattr_error| ::lockattr::__private::reject::<
                    Result<usize, Error>,
                >(lockattr_error))
        };
    }
}
