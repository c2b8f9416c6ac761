//! All rounds: one topology after the other, some at the same time, until the time is over.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use futures_util::future::join_all;
use tokio::time::Instant;

use crate::outcome::Outcome;
use crate::plan::{AROUND, Plan};
use crate::{round, topology};

/// # Errors
///
/// If a round was not clean, or failed to run.
pub(crate) async fn run(plan: &Plan) -> Result<(), String> {
    println!(
        "soak: seed {}, {:?} of faults a round, on {}",
        plan.seed,
        plan.nemesis(),
        plan.on.join(", ")
    );
    let (began, next) = (Instant::now(), RefCell::new(0_usize));
    let sums = RefCell::new(BTreeMap::<&str, Outcome>::new());
    // The next round: each topology in turn, with another seed each time around.
    let due = || {
        let mut next = next.borrow_mut();
        let (nth, on) = (*next, &plan.on);
        let again =
            plan.nemesis.is_none() && began.elapsed() + plan.nemesis() + AROUND <= plan.time;
        (nth < on.len() || again).then(|| {
            *next += 1;
            (on[nth % on.len()], plan.seed + (nth / on.len()) as u64)
        })
    };
    let lane = async || {
        while let Some((topology, seed)) = due() {
            let outcome = one(topology, plan, seed).await;
            println!("{}", outcome.report());
            println!("{}", serde_json::to_string(&outcome).expect("plain data"));
            sums.borrow_mut().entry(topology).or_default().add(&outcome);
        }
    };
    join_all((0..plan.lanes).map(|_| lane())).await;
    let sums = sums.into_inner();
    println!("\nsoak: seed {}, {:.0} s in all", plan.seed, began.elapsed().as_secs_f64());
    let mut all = Outcome::default();
    for sum in sums.values() {
        println!("{}", sum.report());
        all.add(sum);
    }
    all.topology = "all";
    let clean = all.is_clean();
    let Outcome { violations, leaked, outlived, hung, wrong, .. } = &mut all;
    [violations, leaked, outlived, hung, wrong].into_iter().for_each(|list| list.truncate(10));
    println!("{}", serde_json::to_string(&all).expect("plain data"));
    if clean { Ok(()) } else { Err("not clean; each finding is above, with its replay".into()) }
}

/// A round that the harness could not run is a failure too.
async fn one(topology: &'static str, plan: &Plan, seed: u64) -> Outcome {
    let round = AssertUnwindSafe(topology::round_on(topology, plan, seed)).catch_unwind();
    round.await.unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        let text = text.or_else(|| payload.downcast_ref::<&str>().map(|&text| text.to_owned()));
        let wrong = format!("the round broke: {}", text.unwrap_or_default());
        let replay = Some(round::replay(plan, topology, seed));
        Outcome { topology, seed, wrong: vec![wrong], replay, ..Outcome::default() }
    })
}
