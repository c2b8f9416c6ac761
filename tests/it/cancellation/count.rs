//! The number of await points, so that a sweep that covers nothing cannot pass.

use super::sweep::Scenario;
use super::{acquire, annotated, body, hold, shutdown, wait_queue};

/// Each sweep checks its own numbers. This test lists them all and checks that none is left out.
#[test]
#[expect(clippy::print_stdout, reason = "a table to read, with `--nocapture`")]
fn every_point_is_counted() {
    let files = [
        (acquire::SCENARIOS, include_str!("acquire.rs")),
        (hold::SCENARIOS, include_str!("hold.rs")),
        (wait_queue::SCENARIOS, include_str!("wait_queue.rs")),
        (body::SCENARIOS, include_str!("body.rs")),
        (annotated::SCENARIOS, include_str!("annotated.rs")),
        (shutdown::SCENARIOS, include_str!("shutdown.rs")),
    ];
    let (mut points, mut drops) = (0, 0);
    println!("{:>6} {:>6}  future", "points", "drops");
    for (scenarios, source) in files {
        assert_eq!(source.matches("Scenario::of(").count(), scenarios.len());
        for Scenario { name, points: here, drops: all, .. } in scenarios {
            println!("{here:>6} {all:>6}  {name}");
            points += here;
            drops += all;
        }
    }
    println!("{points:>6} {drops:>6}  all");
    assert_eq!((points, drops), (276, 8_967));
}
