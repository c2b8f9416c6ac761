//! A paused process does nothing, and then continues.

use lockattr_sim::{Plan, Topology, Trouble, Wrong, run};

/// The lives of a process are numbered from a thousand times its place.
const LIVES: u32 = 1000;

/// Just above the step of the simulation, in nanoseconds of a history.
const STEP: u64 = 3_000_000;

/// Red without: the return in `Running::step` (the process goes on all the same), or `advance` in
/// `resume` (its clock stays behind, and it uses locks that it has lost).
#[test]
fn a_paused_process_does_nothing_and_then_continues() {
    let (mut pauses, mut went_on) = (0, 0);
    for seed in 0..40 {
        let plan = Plan::draw(seed, Topology::Alone);
        let outcome = run(&plan, Wrong::Nothing);
        if let Err(report) = outcome.judge() {
            panic!("seed {seed}: {report}");
        }
        for fault in &plan.faults {
            let Trouble::Pause(process) = fault.trouble else { continue };
            let number = u32::try_from(process).expect("few processes");
            let count_events = |from: u64, to: u64| {
                let events = outcome.history.iter();
                events
                    .filter(|it| it.process / LIVES == number && (from..to).contains(&it.at))
                    .count()
            };
            let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).expect("short");
            let (at, until) = (nanos(fault.at), nanos(fault.until));
            assert_eq!(
                count_events(at + STEP, until),
                0,
                "seed {seed}: process {process} was paused"
            );
            pauses += 1;
            went_on += usize::from(count_events(until, u64::MAX) > 0);
        }
    }
    assert!(pauses > 10 && went_on * 2 > pauses, "{went_on} of {pauses} continued");
}
