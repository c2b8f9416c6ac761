//! The output: two progress bars during the sales, and a table at the end.

use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::sale::{Outcome, Way};
use crate::{BUYERS, SHOPS, STOCK};

pub(crate) struct Report {
    without: ProgressBar,
    with: ProgressBar,
}

impl Report {
    pub(crate) fn new() -> Self {
        let bars = MultiProgress::new();
        let style = ProgressStyle::with_template("{prefix:>18} {bar:40} {pos:>3}/{len} served")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = |prefix| {
            let bar = ProgressBar::new((SHOPS * BUYERS) as u64).with_style(style.clone());
            let bar = bars.add(bar.with_prefix(prefix));
            bar.tick();
            bar
        };
        Self { without: bar("without the lock"), with: bar("with the lock") }
    }

    pub(crate) fn tick(&self, way: Way) {
        match way {
            Way::Without => self.without.inc(1),
            Way::With => self.with.inc(1),
        }
    }

    pub(crate) fn finish(&self) {
        self.without.abandon();
        self.with.abandon();
    }
}

pub(crate) struct Column {
    sold: i64,
    left: i64,
    took: Duration,
    median: Duration,
    slowest: Duration,
}

impl Column {
    pub(crate) fn new(outcomes: Vec<Outcome>, left: i64, took: Duration) -> Self {
        let sold = outcomes.iter().filter(|outcome| outcome.sold).count();
        let mut times: Vec<_> = outcomes.into_iter().map(|outcome| outcome.took).collect();
        times.sort_unstable();
        Self {
            sold: i64::try_from(sold).unwrap_or(i64::MAX),
            left,
            took,
            median: times.get(times.len() / 2).copied().unwrap_or_default(),
            slowest: times.last().copied().unwrap_or_default(),
        }
    }

    fn oversold(&self) -> i64 {
        (self.sold - STOCK).max(0)
    }

    fn verdict(&self) -> &'static str {
        if self.sold + self.left == STOCK { "exact" } else { "OVERSOLD" }
    }
}

pub(crate) fn print_table(columns: &[Column]) {
    println!("\n\n{:24}{:>18}{:>18}", "", "without the lock", "with the lock");
    row("pieces there were", columns, |_| STOCK.to_string());
    row("pieces sold", columns, |column| column.sold.to_string());
    row("left, says the stock", columns, |column| column.left.to_string());
    row("sold but not there", columns, |column| column.oversold().to_string());
    row("", columns, |column| column.verdict().to_string());
    row("whole sale", columns, |column| millis(column.took));
    row("median buyer", columns, |column| millis(column.median));
    row("slowest buyer", columns, |column| millis(column.slowest));
}

fn row(name: &str, columns: &[Column], value: impl Fn(&Column) -> String) {
    print!("{name:24}");
    for column in columns {
        print!("{:>18}", value(column));
    }
    println!();
}

fn millis(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}
