//! Metrics, through the `metrics` facade: by manager, template and outcome, never by key.
//!
//! A recorder looks up a metric by its name and labels. That costs more than a free lock in memory,
//! so each manager keeps the handles, and looks up a metric once for each template and outcome.
//!
//! The docs and the dashboard use these names: change them there as well.

#[cfg(feature = "metrics")]
pub(super) use recorded::{Metrics, OfTemplate};
#[cfg(not(feature = "metrics"))]
pub(super) use unrecorded::{Metrics, OfTemplate};

/// Whether metrics are compiled in.
pub(super) const ENABLED: bool = cfg!(feature = "metrics");

#[cfg(feature = "metrics")]
mod recorded {
    use std::collections::HashMap;
    use std::fmt;
    use std::sync::{Arc, OnceLock};
    use std::time::Duration;

    use metrics::{
        Counter, Gauge, Histogram, Label, Unit, counter, describe_counter, describe_gauge,
        describe_histogram, gauge, histogram, with_recorder,
    };

    use super::super::outcome::AcquireEnd;
    use super::super::telemetry::Labels;
    use crate::platform::sync::{NameHasher, RwLock};

    /// The handles of one manager.
    #[derive(Debug, Default)]
    pub(crate) struct Metrics {
        templates: RwLock<HashMap<&'static str, Arc<OfTemplate>, NameHasher>>,
        /// By the name of the metric and the outcome.
        commands: RwLock<HashMap<(&'static str, &'static str), Command, NameHasher>>,
    }

    /// The handles of one manager and template.
    pub(crate) struct OfTemplate {
        recorder: RecorderId,
        labels: Vec<Label>,
        waiting: Gauge,
        held: Gauge,
        acquisitions: [OnceLock<Counter>; AcquireEnd::COUNT],
        waits: [OnceLock<Histogram>; AcquireEnd::COUNT],
        /// Holds that were released: the usual end.
        released: OnceLock<Histogram>,
    }

    struct Command {
        recorder: RecorderId,
        counter: Counter,
    }

    /// Which recorder made a handle. A program may install one after its first locks, and each test
    /// may have its own.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct RecorderId(usize);

    impl RecorderId {
        fn current() -> Self {
            with_recorder(|recorder| Self(std::ptr::from_ref(recorder).cast::<()>().addr()))
        }
    }

    impl Metrics {
        /// The handles of this template.
        pub(crate) fn of(&self, template: &'static str, labels: &Labels) -> Arc<OfTemplate> {
            let recorder = RecorderId::current();
            if let Some(known) =
                self.templates.read().get(template).filter(|known| known.recorder == recorder)
            {
                return known.clone();
            }
            let made = Arc::new(OfTemplate::new(template, labels, recorder));
            self.templates.write().insert(template, made.clone());
            made
        }

        /// Counts a renewal or a release, by outcome.
        pub(crate) fn count_command(
            &self,
            name: &'static str,
            outcome: &'static str,
            labels: &Labels,
        ) {
            let recorder = RecorderId::current();
            let known = self.commands.read();
            match known.get(&(name, outcome)).filter(|known| known.recorder == recorder) {
                Some(known) => known.counter.increment(1),
                None => {
                    drop(known);
                    let labels = [of_manager(labels), vec![Label::new("outcome", outcome)]];
                    let counter = counter!(name, labels.concat());
                    counter.increment(1);
                    let command = Command { recorder, counter };
                    self.commands.write().insert((name, outcome), command);
                }
            }
        }

        /// Looks up all metrics again, because the labels have changed.
        pub(crate) fn forget_handles(&self) {
            self.templates.write().clear();
            self.commands.write().clear();
        }

        /// Describes each metric and its unit to the installed recorder.
        pub(crate) fn describe() {
            describe_counter!(
                "lockattr.acquisitions",
                Unit::Count,
                "Finished calls that requested a lock, by outcome"
            );
            describe_histogram!(
                "lockattr.wait.duration",
                Unit::Seconds,
                "From the call to the lock, or to the refusal, by outcome"
            );
            describe_histogram!(
                "lockattr.hold.duration",
                Unit::Seconds,
                "From the acquisition to the end of the hold, by outcome"
            );
            describe_gauge!("lockattr.held", Unit::Count, "Locks that this process holds");
            describe_gauge!(
                "lockattr.waiting",
                Unit::Count,
                "Calls of this process that acquire or wait for a lock"
            );
            describe_counter!("lockattr.renewals", Unit::Count, "Renewals, by outcome");
            describe_counter!(
                "lockattr.shared_results",
                Unit::Count,
                "Results that callers share, by what became of them"
            );
            describe_counter!("lockattr.releases", Unit::Count, "Releases, by outcome");
        }
    }

    impl OfTemplate {
        fn new(template: &'static str, labels: &Labels, recorder: RecorderId) -> Self {
            let mut labels = of_manager(labels);
            labels.push(Label::new("template", template));
            Self {
                recorder,
                waiting: gauge!("lockattr.waiting", labels.clone()),
                held: gauge!("lockattr.held", labels.clone()),
                labels,
                acquisitions: std::array::from_fn(|_| OnceLock::new()),
                waits: std::array::from_fn(|_| OnceLock::new()),
                released: OnceLock::new(),
            }
        }

        /// Changes the number of acquisitions under way.
        pub(crate) fn waits(&self, change: f64) {
            self.waiting.increment(change);
        }

        /// Changes the number of held locks.
        pub(crate) fn holds(&self, change: f64) {
            self.held.increment(change);
        }

        /// Counts an acquisition that is over; `waited` is `None` for a nested call.
        pub(crate) fn acquired(&self, end: AcquireEnd, waited: Option<Duration>) {
            let labels = || self.with_outcome(end.name());
            self.acquisitions[end as usize]
                .get_or_init(|| counter!("lockattr.acquisitions", labels()))
                .increment(1);
            if let Some(waited) = waited {
                self.waits[end as usize]
                    .get_or_init(|| histogram!("lockattr.wait.duration", labels()))
                    .record(waited);
            }
        }

        /// Records a hold that is over.
        pub(crate) fn held(&self, outcome: &'static str, held: Duration) {
            let handle = || histogram!("lockattr.hold.duration", self.with_outcome(outcome));
            match outcome {
                "released" => self.released.get_or_init(handle).record(held),
                _ => handle().record(held),
            }
        }

        fn with_outcome(&self, outcome: &'static str) -> Vec<Label> {
            [&self.labels[..], &[Label::new("outcome", outcome)]].concat()
        }
    }

    fn of_manager(labels: &Labels) -> Vec<Label> {
        let (manager, store) = (labels.manager().to_owned(), labels.store.clone());
        vec![Label::new("manager", manager), Label::new("store", store)]
    }

    impl fmt::Debug for OfTemplate {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("OfTemplate").field("labels", &self.labels).finish_non_exhaustive()
        }
    }

    impl fmt::Debug for Command {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("Command").field("recorder", &self.recorder).finish_non_exhaustive()
        }
    }
}

#[cfg(not(feature = "metrics"))]
mod unrecorded {
    use std::time::Duration;

    use super::super::outcome::AcquireEnd;
    use super::super::telemetry::Labels;

    /// Without the feature `metrics`, nothing is kept and nothing is counted.
    #[derive(Debug, Default)]
    pub(crate) struct Metrics;

    #[derive(Clone, Copy, Debug)]
    pub(crate) struct OfTemplate;

    // By reference, as in the types that count.
    #[allow(clippy::unused_self, clippy::trivially_copy_pass_by_ref)]
    impl Metrics {
        pub(crate) fn of(&self, _: &'static str, _: &Labels) -> OfTemplate {
            OfTemplate
        }

        pub(crate) fn count_command(&self, _: &'static str, _: &'static str, _: &Labels) {}

        pub(crate) fn forget_handles(&self) {}

        pub(crate) fn describe() {}
    }

    #[allow(clippy::unused_self, clippy::trivially_copy_pass_by_ref)]
    impl OfTemplate {
        pub(crate) fn waits(&self, _: f64) {}

        pub(crate) fn holds(&self, _: f64) {}

        pub(crate) fn acquired(&self, _: AcquireEnd, _: Option<Duration>) {}

        pub(crate) fn held(&self, _: &'static str, _: Duration) {}
    }
}
