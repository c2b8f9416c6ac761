//! The cost of a lock on a server where many other keys are held.

use std::time::Duration;

use redis::{Client, RedisResult};

use super::{FLAT_COMMANDS, FLAT_TIME};
use crate::fleet::Size;
use crate::load::Load;
use crate::peers::Peer;
use crate::report::Report;
use crate::rounds::{Way, compare_ways};
use crate::servers::Engine;
use lockattr_tests::bare;

const FEW: usize = 1_000;
const MANY: usize = 1_000_000;

/// The number of commands in one write.
const AT_A_TIME: usize = 10_000;

/// Longer than the bench runs, so that none expires.
const HELD_FOR: Duration = Duration::from_secs(3_600);

const TASKS: usize = 16;
const ROUND: Duration = Duration::from_millis(200);

/// Alternates between two servers, one with few keys and one with many, and runs bare commands on
/// both, whose cost with many keys is not lockattr's.
pub(super) async fn measure(report: &mut Report, engine: Engine, time: Duration) {
    let Some(few) = engine.start(report).await else { return };
    let Some(many) = engine.start(report).await else { return };
    for (started, count) in [(&few, FEW), (&many, MANY)] {
        fill(&bare(&started.server.url()), count).await.expect("the server accepts them");
    }
    report.note(&format!("{TASKS} tasks with a key each, {FEW} other keys held, then {MANY}"));
    let size = Size::new(1, Load::spread(TASKS));
    let way = |peer, server| Way { peer, size, server };
    let ways = [
        way(Peer::Bare, &few.server),
        way(Peer::Ours, &few.server),
        way(Peer::Bare, &many.server),
        way(Peer::Ours, &many.server),
    ];
    let all = compare_ways(report, &ways, (time, ROUND)).await;
    report.table(&all);
    let [bare_few, ours_few, bare_many, ours_many] = all.as_slice() else { return };
    let what = format!("{MANY} held keys over {FEW}: the server's time");
    report.bar(&what, ours_many.server_over(ours_few), "x", FLAT_TIME);
    report.figure(&format!("{what}, bare commands"), bare_many.server_over(bare_few), "x");
    let what = format!("{MANY} held keys over {FEW}: commands");
    report.bar(&what, ours_many.commands.median / ours_few.commands.median, "x", FLAT_COMMANDS);
}

/// Keys and values as lockattr writes them: 32 digits and a label.
async fn fill(url: &str, count: usize) -> RedisResult<()> {
    let mut connection = Client::open(url)?.get_multiplexed_async_connection().await?;
    for from in (0..count).step_by(AT_A_TIME) {
        let mut pipe = redis::pipe();
        for n in from..count.min(from + AT_A_TIME) {
            let value = format!("{n:032x} service=bench host=elsewhere pid=1");
            let set = pipe.cmd("SET").arg(format!("lock:held:{n}")).arg(value);
            set.arg("NX").arg("PX").arg(HELD_FOR.as_millis() as u64).ignore();
        }
        let () = pipe.query_async(&mut connection).await?;
    }
    Ok(())
}
