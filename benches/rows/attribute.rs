//! What the attribute adds to its expansion written by hand, on the cheapest store.

use std::time::Duration;

use lockattr::LockManager;

use super::note_instructions;
use crate::instructions::Counted;
use crate::repeated::{Work, alternate};
use crate::report::{Bar, Report};
use crate::spread::Spread;

const WORKS: [Work; 2] = [Work::Annotated, Work::ByHand];

pub(super) async fn measure(report: &mut Report, time: Duration) {
    report.row("attribute", "an annotated function over `with_lock` by hand, in memory");
    let manager = LockManager::connect("memory://").await.expect("it cannot fail");
    manager.install().expect("the only one of this process");
    let turns = alternate(WORKS, &manager, time).await.expect("no other caller");

    for (n, work) in WORKS.into_iter().enumerate() {
        let Some(nanos) = Spread::of(turns.iter().map(|turn| turn[n])) else { continue };
        let Spread { median, min, max } = nanos;
        report.note(&format!("{:<10} {median:.0} ns, from {min:.0} to {max:.0}", work.name()));
    }
    // Turn by turn: neighbouring turns had the same conditions.
    if let Some(ratio) = Spread::of(turns.iter().map(|[annotated, by_hand]| annotated / by_hand)) {
        let percent = |ratio: f64| 100.0 * (ratio - 1.0);
        let Spread { median, min, max } = ratio;
        let added = Spread { median: percent(median), min: percent(min), max: percent(max) };
        report.bar("time that the attribute adds", added, "%", Bar::AtMost(2.0));
    }
    if let [Some(annotated), Some(by_hand)] = note_instructions(report, WORKS.map(Counted::Work)) {
        let percent = 100.0 * (annotated / by_hand - 1.0);
        report.bar("instructions that the attribute adds", percent, "%", Bar::AtMost(2.0));
    }
}
