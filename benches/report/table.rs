//! The layout of measures and figures on the terminal.

use std::time::Duration;

use crate::measured::Measured;

pub(super) fn head() -> String {
    format!(
        "  {:<22}{:>10}{:>20}{:>12}{:>10}{:>10}{:>10}{:>10}{:>12}{:>8}{:>8}{:>11}",
        "",
        "a second",
        "lowest to highest",
        "hand-offs",
        "wait p50",
        "p99",
        "max",
        "commands",
        "a hand-off",
        "calls",
        "share",
        "server"
    )
}

pub(super) fn line(measured: &Measured) -> String {
    let Measured { peer, rate, server, .. } = measured;
    let range = format!("{} to {}", figure(rate.min), figure(rate.max));
    let [p50, p99, max] = [0.5, 0.99, 1.0].map(|quantile| time(measured.wait(quantile)));
    let hand_offs = if_contended(measured, measured.hand_offs.median);
    let commands = figure(measured.commands.median);
    let each = if_contended(measured, measured.commands_per_hand_off.median);
    let calls = figure(measured.calls.median);
    let share = if_contended(measured, measured.share.median);
    let server = format!("{} µs", figure(server.median));
    format!(
        "  {:<22}{:>10}{range:>20}{hand_offs:>12}{p50:>10}{p99:>10}{max:>10}{commands:>10}\
         {each:>12}{calls:>8}{share:>8}{server:>11}",
        peer.name(),
        figure(rate.median),
    )
}

/// Blank unless callers compete for a lock.
fn if_contended(measured: &Measured, value: f64) -> String {
    if measured.is_contended() { figure(value) } else { String::new() }
}

/// Three significant digits, or all digits before the point.
pub(super) fn figure(value: f64) -> String {
    let digits = match value.abs() {
        0.0 => 0,
        ..0.1 => 4,
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

fn time(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds < 1e-6 => format!("{} ns", figure(seconds * 1e9)),
        seconds if seconds < 1e-3 => format!("{} µs", figure(seconds * 1e6)),
        seconds if seconds < 1.0 => format!("{} ms", figure(seconds * 1e3)),
        seconds => format!("{} s", figure(seconds)),
    }
}
