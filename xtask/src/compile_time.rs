//! `cargo xtask compile-time`: what the compiler does for annotated functions, beside the same
//! functions without the attribute.

mod package;

use package::{FUNCTIONS, Package};

/// Plain and annotated in turn, because the machine's speed changes.
const ROUNDS: usize = 3;

/// What cargo does, and how much longer it may take with the attribute.
const COMMANDS: [(&str, &[&str], Option<f64>); 3] = [
    ("cargo check", &["check"], None),
    ("cargo build", &["build"], Some(3.0)),
    ("cargo build --release", &["build", "--release"], Some(2.5)),
];

pub(crate) fn run() -> Result<(), String> {
    let package = Package::create()?;
    println!(
        "{FUNCTIONS} async functions in one program; CPU-seconds, the median of {ROUNDS} rounds:"
    );
    let mut missed = Vec::new();
    for (name, words, bar) in COMMANDS {
        // The dependencies, once.
        package.spent(words, false)?;
        let mut rounds = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            for annotated in [false, true] {
                rounds[usize::from(annotated)].push(package.spent(words, annotated)?);
            }
        }
        let [plain, annotated] = rounds.map(median);
        let ratio = annotated / plain;
        println!(
            "{name}: plain {plain:.1}, annotated {annotated:.1}, {ratio:.2} x{}",
            verdict(ratio, bar)
        );
        if bar.is_some_and(|bar| ratio > bar) {
            missed.push(name);
        }
    }
    match &missed[..] {
        [] => Ok(()),
        _ => Err(format!("above the bar: {}", missed.join(", "))),
    }
}

fn verdict(ratio: f64, bar: Option<f64>) -> String {
    match bar {
        None => String::new(),
        Some(bar) if ratio <= bar => format!(" (at most {bar}: met)"),
        Some(bar) => format!(" (at most {bar}: NOT MET)"),
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
