//! The metrics that one test's runtime has recorded, added up.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use metrics::{Unit, with_local_recorder};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tokio::runtime::Builder;

/// The metrics recorded so far. Names are `name{template,outcome}`, with the labels that exist; the
/// labels of the manager are left out, because most tests have one manager.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    snapshots: Option<Snapshotter>,
    seen: RefCell<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    counts: BTreeMap<String, u64>,
    gauges: BTreeMap<String, f64>,
    times: BTreeMap<String, Vec<f64>>,
    units: BTreeMap<String, Unit>,
    /// The labels `manager` and `store` of each metric.
    managers: BTreeSet<(String, String, String)>,
}

/// Runs a test on a paused clock and one thread, with a recorder of its own.
pub(super) fn recorded<T>(test: impl AsyncFnOnce(&Metrics) -> T) -> T {
    let recorder = DebuggingRecorder::new();
    let metrics = Metrics { snapshots: Some(recorder.snapshotter()), ..Metrics::default() };
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    with_local_recorder(&recorder, || runtime.block_on(test(&metrics)))
}

impl Metrics {
    /// Returns all counters of this name that are not zero, without the name.
    pub(super) fn counts(&self, name: &str) -> Vec<(String, u64)> {
        let seen = self.look();
        let named = seen.counts.iter().filter(|(_, count)| **count > 0);
        named.filter_map(|(key, count)| Some((labels(key, name)?, *count))).collect()
    }

    /// Returns the value of a gauge, summed over all of its labels.
    pub(super) fn now(&self, name: &str) -> f64 {
        let seen = self.look();
        seen.gauges.iter().filter(|(key, _)| labels(key, name).is_some()).map(|(_, now)| now).sum()
    }

    /// Returns all durations of this name in seconds, rounded to hundredths.
    pub(super) fn times(&self, name: &str) -> Vec<(String, Vec<f64>)> {
        let rounded =
            |times: &Vec<f64>| times.iter().map(|t| (t * 100.0).round() / 100.0).collect();
        let seen = self.look();
        let named = seen.times.iter();
        named.filter_map(|(key, times)| Some((labels(key, name)?, rounded(times)))).collect()
    }

    /// Returns each recorded metric with its unit.
    pub(super) fn units(&self) -> BTreeMap<String, Unit> {
        self.look().units.clone()
    }

    /// Returns the labels `manager` and `store` of this metric, each pair once.
    pub(super) fn managers(&self, name: &str) -> Vec<(String, String)> {
        let named = self.look().managers.clone().into_iter().filter(|(metric, ..)| metric == name);
        named.map(|(_, manager, store)| (manager, store)).collect()
    }

    /// Returns everything as text, to check that something is not in it.
    pub(super) fn all(&self) -> String {
        format!("{:?}", *self.look())
    }

    /// A snapshot drains the recorder, so its values are added up here.
    fn look(&self) -> std::cell::Ref<'_, Seen> {
        let news = self.snapshots.as_ref().map(Snapshotter::snapshot).expect("made by recorded()");
        let mut borrowed = self.seen.borrow_mut();
        let seen = &mut *borrowed;
        for (key, unit, described, value) in news.into_vec() {
            let key = key.key();
            let of = |name| key.labels().find(|label| label.key() == name);
            let [manager, store] = ["manager", "store"].map(|name| {
                of(name).unwrap_or_else(|| panic!("{} has no {name}", key.name())).value().into()
            });
            seen.managers.insert((key.name().to_owned(), manager, store));
            let labels = key.labels().filter(|label| !matches!(label.key(), "manager" | "store"));
            let labels: Vec<_> = labels.map(metrics::Label::value).collect();
            let name = format!("{}{{{}}}", key.name(), labels.join(","));
            let unit = described.and(unit).unwrap_or_else(|| panic!("{name} is not described"));
            seen.units.insert(key.name().to_owned(), unit);
            match value {
                DebugValue::Counter(count) => *seen.counts.entry(name).or_default() += count,
                DebugValue::Gauge(change) => *seen.gauges.entry(name).or_default() += *change,
                DebugValue::Histogram(times) => {
                    let times = times.into_iter().map(f64::from);
                    seen.times.entry(name).or_default().extend(times);
                }
            }
        }
        drop(borrowed);
        self.seen.borrow()
    }
}

/// Returns the labels in a key of this name.
fn labels(key: &str, name: &str) -> Option<String> {
    Some(key.strip_prefix(name)?.strip_prefix('{')?.strip_suffix('}')?.to_owned())
}

/// Converts expected values to the form that [`Metrics`] returns.
pub(super) fn of<T: Clone>(expected: &[(&str, T)]) -> Vec<(String, T)> {
    expected.iter().map(|(labels, value)| ((*labels).to_owned(), value.clone())).collect()
}
