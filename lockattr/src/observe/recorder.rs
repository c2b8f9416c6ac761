//! Where a manager reports its acquisitions besides spans and metrics: to the observer of a test.
//! Without the feature `testing` both types are empty and cost nothing.

#[cfg(feature = "testing")]
pub(crate) use observed::{Observation, Observer, Recorder, Recording};
#[cfg(not(feature = "testing"))]
pub(crate) use unobserved::{Recorder, Recording};

#[cfg(feature = "testing")]
mod observed {
    use std::fmt::Debug;
    use std::sync::Arc;

    use crate::lease::LeaseState;
    use crate::lock::options::ResolvedOptions;
    use crate::{Error, LostReason};

    /// Records the acquisitions of a manager.
    pub(crate) trait Observer: Debug + Send + Sync {
        fn begin(&self, options: &ResolvedOptions, keys: Vec<String>) -> Box<dyn Observation>;
    }

    /// Records one acquisition, and then its hold. Dropping this ends the record.
    pub(crate) trait Observation: Debug + Send + Sync {
        /// Records that it is a nested call that re-enters a hold.
        fn nested(&self);

        /// Records that it waits from here on.
        fn waits(&self);

        fn acquired(&mut self, hold: &Arc<LeaseState>);

        fn refused(&mut self, error: &Error);

        /// Records that its hold was lost, for the reason that its release returned.
        fn lost(&mut self, reason: LostReason);
    }

    /// The observer of a manager, if it has one.
    #[derive(Clone, Debug, Default)]
    pub(crate) struct Recorder(pub(crate) Option<Arc<dyn Observer>>);

    /// The record of one acquisition, if the manager has an observer.
    #[derive(Debug, Default)]
    pub(crate) struct Recording(Option<Box<dyn Observation>>);

    impl Recorder {
        pub(crate) fn begin<'a>(
            &self,
            options: &ResolvedOptions,
            keys: impl Iterator<Item = &'a str>,
        ) -> Recording {
            let begin = |observer: &Arc<dyn Observer>| {
                observer.begin(options, keys.map(str::to_owned).collect())
            };
            Recording(self.0.as_ref().map(begin))
        }
    }

    impl Recording {
        pub(crate) fn nested(self) -> Self {
            if let Some(observation) = &self.0 {
                observation.nested();
            }
            self
        }

        pub(crate) fn waits(&self) {
            if let Some(observation) = &self.0 {
                observation.waits();
            }
        }

        pub(crate) fn acquired(&mut self, hold: &Arc<LeaseState>) {
            if let Some(observation) = &mut self.0 {
                observation.acquired(hold);
            }
        }

        pub(crate) fn refused(&mut self, error: &Error) {
            if let Some(observation) = &mut self.0 {
                observation.refused(error);
            }
        }

        pub(crate) fn lost(&mut self, reason: LostReason) {
            if let Some(observation) = &mut self.0 {
                observation.lost(reason);
            }
        }
    }
}

#[cfg(not(feature = "testing"))]
mod unobserved {
    use std::sync::Arc;

    use crate::lease::LeaseState;
    use crate::lock::options::ResolvedOptions;
    use crate::{Error, LostReason};

    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct Recorder {}

    #[derive(Debug, Default)]
    pub(crate) struct Recording {}

    impl Recorder {
        pub(crate) fn begin<'a>(
            self,
            _: &ResolvedOptions,
            _: impl Iterator<Item = &'a str>,
        ) -> Recording {
            Recording {}
        }
    }

    // By reference, as in the types that record.
    #[allow(clippy::unused_self, clippy::trivially_copy_pass_by_ref)]
    impl Recording {
        pub(crate) fn nested(self) -> Self {
            self
        }

        pub(crate) fn waits(&self) {}

        pub(crate) fn acquired(&mut self, _: &Arc<LeaseState>) {}

        pub(crate) fn refused(&mut self, _: &Error) {}

        pub(crate) fn lost(&mut self, _: LostReason) {}
    }
}
