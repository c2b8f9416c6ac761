//! The times of several ways of locking in one run.

use std::sync::Arc;

use hdrhistogram::Histogram;

use crate::report::Report;
use crate::spread::Spread;

/// The times of one way in nanoseconds: all of them, and the medians of the rounds.
pub(crate) struct Taken {
    all: Histogram<u64>,
    medians: Vec<f64>,
}

impl Taken {
    pub(crate) fn new() -> Self {
        Self { all: Histogram::new(3).expect("three digits"), medians: Vec::new() }
    }

    pub(crate) fn add(&mut self, round: Histogram<u64>) {
        self.medians.push(round.value_at_quantile(0.5) as f64);
        self.all.add(round).expect("alike");
    }

    pub(crate) fn micros(&self, quantile: f64) -> f64 {
        self.all.value_at_quantile(quantile) as f64 / 1e3
    }

    /// Round by round, because both saw the same noise.
    pub(crate) fn over(&self, other: &Self) -> Spread {
        let ratios = self.medians.iter().zip(&other.medians).map(|(one, other)| one / other);
        Spread::of(ratios).expect("there was a round")
    }

    /// Prints a line after a name of this width.
    pub(crate) fn note(&self, report: &mut Report, name: &str, width: usize) {
        let [p50, p99] = [0.5, 0.99].map(|quantile| self.micros(quantile));
        report.note(&format!("{name:<width$} p50 {p50:>8.1} us   p99 {p99:>8.1} us"));
    }
}

/// All in turn, ABBA…, after a round of each that does not count.
pub(crate) async fn in_turn<W, const N: usize>(
    ways: [&Arc<W>; N],
    rounds: usize,
    round: impl AsyncFn(&Arc<W>) -> Histogram<u64>,
) -> [Taken; N] {
    let mut all = ways.map(|_| Taken::new());
    for way in ways {
        round(way).await;
    }
    for nth in 0..rounds {
        for turn in 0..N {
            let which = if nth % 2 == 0 { turn } else { N - 1 - turn };
            all[which].add(round(ways[which]).await);
        }
    }
    all
}
