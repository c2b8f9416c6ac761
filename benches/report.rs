//! The output: tables, and figures beside their bars, on the terminal and in files.

mod bar;
mod csv;
mod plot;
mod table;

use std::collections::BTreeSet;

use hdrhistogram::Histogram;

use crate::measured::Measured;
use crate::peers::Peer;
use crate::spread::Spread;
pub(crate) use bar::Bar;
use csv::Csv;
pub(crate) use plot::{Line, Plot};
use table::{figure, head, line};

const MEASURES: &str = "row,server,peer,cores,processes,tasks,keys,rate,rate_min,rate_max,\
    wait_p50_ns,wait_p99_ns,wait_max_ns,commands,calls,server_us,hand_offs,commands_per_hand_off,\
    share_min_max,body_ns";

const LATENCIES: &str = "row,what,work,count,p50_ns,p90_ns,p99_ns,max_ns";

const BARS: &str = "row,server,what,value,min,max,unit,bar,met";

const LEGEND: &str = "\
a second: acquisitions, median of the rounds
hand-offs: those of them that had another before (another process of several, else another task)
wait: from asking until holding, over all rounds
commands: sent by clients for an acquisition; and for a hand-off
calls: made by scripts for an acquisition
share: what the task with the least got over what the one with the most got
server: what it computes for an acquisition";

pub(crate) struct Report {
    row: &'static str,
    /// The server that is being measured; empty for none in particular.
    server: String,
    measures: Csv,
    bars: Csv,
    latencies: Csv,
    missed: Vec<String>,
    missing: BTreeSet<String>,
}

impl Report {
    pub(crate) fn new() -> Self {
        // The number of cores helps to judge the spread of the figures.
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        println!("{cores} cores; load before we begin: {}", load.trim_end());
        println!("{LEGEND}");
        let (measures, bars) = (Csv::open("measures.csv", MEASURES), Csv::open("bars.csv", BARS));
        let latencies = Csv::open("latencies.csv", LATENCIES);
        let (row, server, missed, missing) = Default::default();
        Self { row, server, measures, bars, latencies, missed, missing }
    }

    /// Begins a row, and drops the results of earlier runs.
    pub(crate) fn row(&mut self, row: &'static str, title: &str) {
        println!("\n{row}: {title}");
        self.row = row;
        self.server.clear();
        self.measures.forget(row);
        self.bars.forget(row);
        self.latencies.forget(row);
    }

    pub(crate) fn server(&mut self, name: &str) {
        if self.server != name {
            println!("  on {name}:");
            name.clone_into(&mut self.server);
        }
    }

    /// Reports a server that cannot be started, now and again at the end.
    pub(crate) fn no_server(&mut self, why: &str) {
        if self.missing.insert(why.to_owned()) {
            println!("  not present: {why}");
        }
    }

    pub(crate) fn not_present(&mut self, peer: Peer, why: &str) {
        println!("  {:<22}not present: {why}", peer.name());
    }

    pub(crate) fn table(&mut self, all: &[Measured]) {
        println!("{}", head());
        for measured in all {
            println!("{}", line(measured));
            let Measured { peer, size, rate, .. } = measured;
            let counts = [size.processes, size.load.tasks, size.load.key_count()];
            let waits = [0.5, 0.99, 1.0].map(|quantile| measured.wait(quantile).as_nanos());
            let mut fields = vec![self.server.clone()];
            fields.extend([peer.name(), size.cores.name()].map(str::to_owned));
            fields.extend(counts.map(|count| count.to_string()));
            fields.extend([rate.median, rate.min, rate.max].map(|rate| rate.to_string()));
            fields.extend(waits.map(|nanos| nanos.to_string()));
            let each = [measured.commands, measured.calls, measured.server];
            fields.extend(each.map(|spread| spread.median.to_string()));
            let contended = [measured.hand_offs, measured.commands_per_hand_off, measured.share];
            fields.extend(contended.map(|spread| match measured.is_contended() {
                true => spread.median.to_string(),
                false => String::new(),
            }));
            fields.push(measured.body.as_nanos().to_string());
            self.measures.push(self.row, &fields);
        }
    }

    /// How long each repetition of some work took, in nanoseconds.
    pub(crate) fn latency(&mut self, what: &str, work: &str, taken: &Histogram<u64>) {
        let [p50, p90, p99, max] = [0.5, 0.9, 0.99, 1.0].map(|q| taken.value_at_quantile(q));
        let [a, b, c, d] = [p50, p90, p99, max].map(|nanos| figure(nanos as f64 / 1e3));
        println!("  {what:<22}{work:<22}p50 {a:>8}   p90 {b:>8}   p99 {c:>8}   max {d:>8} µs");
        let numbers = [taken.len(), p50, p90, p99, max].map(|number| number.to_string());
        let mut fields = vec![what.to_owned(), work.to_owned()];
        fields.extend(numbers);
        self.latencies.push(self.row, &fields);
    }

    pub(crate) fn note(&mut self, text: &str) {
        println!("  {text}");
    }

    pub(crate) fn bar(&mut self, what: &str, value: impl Into<Spread>, unit: &str, bar: Bar) {
        let value = value.into();
        let met = if bar.is_met(value.median) { "met" } else { "NOT MET" };
        let line = self.push_figure(what, value, unit, (&bar.to_string(), met));
        if met != "met" {
            let on = format!("{:<12}{:<12}", self.row, self.server);
            self.missed.push(format!("  {on}{line}"));
        }
    }

    pub(crate) fn figure(&mut self, what: &str, value: impl Into<Spread>, unit: &str) {
        self.push_figure(what, value.into(), unit, ("", ""));
    }

    /// Prints and records a figure; returns the printed line.
    fn push_figure(
        &mut self,
        what: &str,
        Spread { median: value, min, max }: Spread,
        unit: &str,
        (bar, met): (&str, &str),
    ) -> String {
        let shown = format!("{} {unit}", figure(value));
        let spread = match min < max {
            true => format!("   ({} to {})", figure(min), figure(max)),
            false => String::new(),
        };
        let beside = if bar.is_empty() { String::new() } else { format!("   bar {bar:<9}{met}") };
        let line = format!("  {what:<58}{shown:>12}{beside}{spread}");
        println!("{line}");
        let [value, min, max] = [value, min, max].map(|value| value.to_string());
        let [server, what] = [&self.server, what].map(str::to_owned);
        let words = [unit, bar, met].map(str::to_owned);
        let fields = [&[server, what, value, min, max][..], &words].concat();
        self.bars.push(self.row, &fields);
        line
    }

    pub(crate) fn plot(&mut self, plot: &Plot<'_>) {
        let path = csv::results().join(plot.file);
        if let Err(error) = plot.draw(&path) {
            println!("  {}: {error}", path.display());
        }
    }

    /// Writes the files, and lists the figures below their bars.
    pub(crate) fn finish(mut self) {
        self.measures.write();
        self.bars.write();
        self.latencies.write();
        println!("\nbelow their bars: {}", self.missed.len());
        for line in &self.missed {
            println!("{line}");
        }
        for why in &self.missing {
            println!("not measured: {why}");
        }
        println!("written to {}", csv::results().display());
    }
}
