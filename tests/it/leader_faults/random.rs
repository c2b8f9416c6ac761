//! Three processes campaign while they are killed, stopped, blocked and cut off at random.

use std::time::Duration;

use lockattr_history::seed;
use lockattr_tests::{Engine, Wires};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use tokio::time::sleep;

use super::{Campaign, Leader};

/// Faults in each run.
const FAULTS: usize = 12;

/// Longer than a lease.
const WITHIN: Duration = Duration::from_secs(7);

#[derive(Clone, Copy, Debug)]
enum Fault {
    Kill,
    Stop,
    Block,
    Hang,
    Resign,
    Cut,
    Swallow,
    Hold,
    Delay,
}

const ALL: [Fault; 9] = [
    Fault::Kill,
    Fault::Stop,
    Fault::Block,
    Fault::Hang,
    Fault::Resign,
    Fault::Cut,
    Fault::Swallow,
    Fault::Hold,
    Fault::Delay,
];

/// A process with a network of its own.
struct Member {
    leader: Leader,
    wires: Wires,
}

/// The faults are random, so there is no edit of the code with which every run fails. Which leases end is a matter of
/// luck too, and the judge asks only for what may never happen.
pub(super) async fn terms_never_interleave_while_processes_and_networks_fail_at_random<
    E: Engine,
>(
    campaign: Campaign<'_, E>,
) {
    let campaign = campaign.short_leases().progress_within(WITHIN);
    let mut random = StdRng::seed_from_u64(seed());
    let mut members = Vec::new();
    for _ in 0..3 {
        let wires = Wires::before(campaign.engine).await;
        let mut leader = campaign.process_over(&wires);
        leader.starts().await;
        members.push(Member { leader, wires });
    }
    for _ in 0..FAULTS {
        sleep(Duration::from_millis(random.random_range(100..1500))).await;
        // Most faults meet the leader.
        let leads = campaign.last_leader().filter(|_| random.random_bool(0.8));
        let place = members.iter().position(|member| Some(member.leader.process) == leads);
        let place = place.unwrap_or_else(|| random.random_range(0..members.len()));
        let fault = *ALL.choose(&mut random).expect("there are some");
        let time = Duration::from_millis(random.random_range(200..9000));
        measured(&format!("{fault:?} of process {} for {time:?}", members[place].leader.process));
        meets(&mut members[place], fault, time).await;
        if matches!(fault, Fault::Kill) {
            let mut leader = campaign.process_over(&members[place].wires);
            leader.starts().await;
            members[place].leader = leader;
        }
    }
    // The last one that lives leads, whatever happened to the others.
    let mut last = campaign.process();
    last.starts().await;
    for member in &mut members {
        member.leader.node.kill();
    }
    let term = last.leads().await;
    let id = last.id();
    campaign.sees(&mut last, id, term).await;
    let judged = campaign.over([last]).await;
    measured(&format!("{judged:?}"));
}

/// Shown by `--nocapture`.
#[expect(clippy::print_stderr, reason = "what a random run was, for those who look into it")]
fn measured(text: &str) {
    eprintln!("{text}");
}

async fn meets(member: &mut Member, fault: Fault, time: Duration) {
    let Member { leader, wires } = member;
    match fault {
        Fault::Kill => leader.node.kill(),
        Fault::Stop => {
            // Between two writes of a leader. A process that does not lead keeps the order.
            leader.node.say("stop").await;
            sleep(time).await;
            leader.node.continue_signal();
        }
        Fault::Block => leader.node.say(&format!("block {}", time.as_millis())).await,
        Fault::Hang => leader.node.say("hang").await,
        Fault::Resign => leader.node.say("resign").await,
        Fault::Cut => {
            wires.cut().await;
            sleep(time).await;
        }
        Fault::Swallow => {
            wires.swallow();
            sleep(time).await;
        }
        Fault::Hold => {
            wires.hold();
            sleep(time).await;
        }
        Fault::Delay => {
            wires.delay(Duration::from_millis(200));
            sleep(time).await;
        }
    }
    wires.pass().await;
}
