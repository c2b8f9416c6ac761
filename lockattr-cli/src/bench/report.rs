//! The result of a bench, as a table and as an object. Pure.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use super::worker::{TaskResult, histogram};

pub(super) struct Report {
    tasks: u32,
    keys: u32,
    waits: Histogram<u64>,
    hand_offs: u64,
    pub(super) took: Duration,
}

impl Report {
    pub(super) fn new(tasks: u32, keys: u32) -> Self {
        Self { tasks, keys, waits: histogram(), hand_offs: 0, took: Duration::ZERO }
    }

    pub(super) fn add(&mut self, result: &TaskResult) {
        // All histograms have the same bounds, and values outside were clamped.
        self.waits.add(&result.waits).expect("histograms alike");
        self.hand_offs += result.hand_offs;
    }

    pub(super) fn table(&self) -> String {
        let lines = [
            ("tasks", self.tasks.to_string()),
            ("keys", self.keys.to_string()),
            ("seconds", format!("{:.1}", self.took.as_secs_f64())),
            ("acquired and released", self.waits.len().to_string()),
            ("per second", format!("{:.0}", self.per_second(self.waits.len()))),
            ("acquire, p50", self.quantile(0.5)),
            ("acquire, p99", self.quantile(0.99)),
            ("acquire, longest", self.quantile(1.0)),
            ("hand-offs", self.hand_offs.to_string()),
            ("hand-offs per second", format!("{:.0}", self.per_second(self.hand_offs))),
        ];
        let line = |(name, value): (&str, String)| format!("{name:<22}{value:>12}");
        lines.map(line).join("\n")
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "tasks": self.tasks,
            "keys": self.keys,
            "seconds": self.took.as_secs_f64(),
            "acquired": self.waits.len(),
            "per_second": self.per_second(self.waits.len()),
            "acquire_p50_us": self.waits.value_at_quantile(0.5),
            "acquire_p99_us": self.waits.value_at_quantile(0.99),
            "acquire_max_us": self.waits.max(),
            "hand_offs": self.hand_offs,
            "hand_offs_per_second": self.per_second(self.hand_offs),
        })
    }

    fn quantile(&self, quantile: f64) -> String {
        let micros = self.waits.value_at_quantile(quantile);
        if micros < 1_000 {
            return format!("{micros} µs");
        }
        #[allow(clippy::cast_precision_loss, reason = "an hour in microseconds has 32 bits")]
        let millis = micros as f64 / 1_000.0;
        format!("{millis:.1} ms")
    }

    fn per_second(&self, count: u64) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "for the eye")]
        let count = count as f64;
        count / self.took.as_secs_f64().max(f64::EPSILON)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_report_is_a_table_and_an_object() {
        let mut result = TaskResult { waits: histogram(), hand_offs: 30 };
        for micros in 1..=100 {
            result.waits.record(micros * 20).unwrap();
        }
        let mut report = Report::new(4, 2);
        report.add(&result);
        report.took = Duration::from_secs(2);
        expect![[r#"
            tasks                            4
            keys                             2
            seconds                        2.0
            acquired and released          100
            per second                      50
            acquire, p50                1.0 ms
            acquire, p99                2.0 ms
            acquire, longest            2.0 ms
            hand-offs                       30
            hand-offs per second            15
        "#]]
        .assert_eq(&(report.table() + "\n"));
        expect![[r#"{"acquire_max_us":2000,"acquire_p50_us":1000,"acquire_p99_us":1980,"acquired":100,"hand_offs":30,"hand_offs_per_second":15.0,"keys":2,"per_second":50.0,"seconds":2.0,"tasks":4}"#]].assert_eq(&report.json().to_string());
    }

    #[test]
    fn a_bench_that_did_nothing_says_so() {
        let line = format!("{:<22}{:>12}", "per second", 0);
        assert!(Report::new(1, 1).table().lines().any(|row| row == line));
    }
}
