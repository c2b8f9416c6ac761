//! A process that campaigns for one lock, and as its leader writes to a resource that compares the
//! numbers of the terms.

use std::panic::{self, AssertUnwindSafe};
use std::pin::pin;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use futures_util::FutureExt;
use lockattr::{Error, Term};
use lockattr_history::TermStep;
use tokio::time::{Instant, sleep, timeout};

use super::act::{PLANNED, is_planned};
use super::term_work::{Campaign, Ending, TermWork};
use super::{PEACE, World};
use crate::chance::stream;
use crate::outcome::Complaint;

/// The lock of the leaders.
pub(crate) const LEADER: &str = "leader";

/// The name of the file that the leaders write to.
pub(crate) const TERMS: &str = "terms.jsonl";

/// How often a leader asks whether the store shows its term.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// How a body ended its campaign.
#[derive(Debug, PartialEq)]
enum Returned {
    AnError,
    /// It has led when there were no more faults.
    InPeace,
}

/// Campaigns again and again. When there are no more faults, the process must lead once more, in a
/// term of its own; the campaign that waits then goes on.
pub(super) async fn campaigns(world: Arc<World>, seed: u64) {
    let (mut campaigns, mut terms) = (stream(seed, "campaigns"), stream(seed, "terms"));
    let leads = async {
        loop {
            let campaign = Campaign::drawn(&mut campaigns);
            let silence = campaign.bounds_silence;
            let mut body = |term| lead(&world, TermWork::drawn(&mut terms), silence, term);
            if run_campaign(&world, &campaign, &mut body).await == Some(Returned::InPeace) {
                return;
            }
            sleep(campaign.rest).await;
        }
    };
    let (mut leads, mut over) = (pin!(leads), world.over.subscribe());
    tokio::select! {
        () = &mut leads => return,
        _ = over.wait_for(|over| *over) => {}
    }
    // The others lead once in the same time.
    if timeout(PEACE, leads).await.is_err() {
        let text = format!("without faults it does not lead within {PEACE:?}");
        world.complaints.say(Complaint::Hung(text));
    }
}

/// Runs one campaign until a body returns or panics, or until its caller drops it.
async fn run_campaign<F>(
    world: &World,
    campaign: &Campaign,
    body: impl FnMut(Term) -> F,
) -> Option<Returned>
where
    F: Future<Output = Returned>,
{
    let led = world.manager.lead(LEADER, campaign.options.clone(), body);
    let led = AssertUnwindSafe(led).catch_unwind();
    let ended = match campaign.dropped_after {
        Some(after) => timeout(after, led).await.ok()?,
        None => led.await,
    };
    let wrong = match ended {
        Ok(Ok(returned)) => return Some(returned),
        Ok(Err(Error::Lost { .. })) => return None,
        Err(payload) if is_planned(&*payload) => return None,
        Ok(Err(error)) => format!("a campaign ends: {error}"),
        Err(_) => "a panic".to_owned(),
    };
    world.complaints.say(Complaint::Wrong(format!("{wrong} in {campaign:?}")));
    None
}

/// Works as the leader in a term, until it is over.
async fn lead(world: &World, work: TermWork, bounds_silence: bool, term: Term) -> Returned {
    let body = Body::begin(world, &term);
    if world.is_over() {
        return body.lead_in_peace().await;
    }
    for _ in 0..work.writes {
        body.write();
        term.progress();
        sleep(work.every).await;
    }
    if let Some(time) = work.blocks {
        block(time);
        body.write();
    }
    let until = Instant::now() + Ending::LONGEST;
    match work.ending {
        Ending::Resigns => {}
        Ending::Returns => return Returned::AnError,
        Ending::Panics => panic::panic_any(PLANNED),
        Ending::Hangs => sleep(Ending::LONGEST).await,
        Ending::IsQuiet => {
            while Instant::now() < until {
                body.write();
                sleep(work.every).await;
            }
        }
    }
    let was_silent = matches!(work.ending, Ending::Hangs | Ending::IsQuiet);
    if bounds_silence && was_silent && term.ensure_held().is_ok() {
        let text =
            format!("after {:?} of silence, it leads in term {}", Ending::LONGEST, term.number());
        world.complaints.say(Complaint::Violation(text));
    }
    term.resign();
    // It may write until its next await.
    body.write();
    std::future::pending().await
}

/// The body of a term. Notes its beginning, and its end when it is dropped.
struct Body<'a> {
    world: &'a World,
    term: &'a Term,
}

impl<'a> Body<'a> {
    fn begin(world: &'a World, term: &'a Term) -> Self {
        let body = Self { world, term };
        body.note(TermStep::Began);
        body
    }

    fn note(&self, step: TermStep) {
        self.world.terms.note(self.world.process, self.term.number().get(), step);
    }

    /// Whether the resource accepts a write.
    fn write(&self) -> bool {
        self.world.terms.write(self.world.process, self.term)
    }

    /// The resource accepts a write, and the store shows the term to followers.
    async fn lead_in_peace(&self) -> Returned {
        let is_shown = async || {
            let leader = self.world.manager.leader(LEADER).await.ok().flatten();
            leader.and_then(|leader| leader.term) == Some(self.term.number())
        };
        // On a busy machine the term may be over; then another one follows.
        while !self.write() || (self.world.shows_terms && !is_shown().await) {
            self.term.progress();
            sleep(ASK_EVERY).await;
        }
        Returned::InPeace
    }
}

impl Drop for Body<'_> {
    fn drop(&mut self) {
        self.note(TermStep::Ended);
    }
}

#[expect(clippy::disallowed_methods, reason = "the fault that is meant")]
fn block(time: Duration) {
    thread::sleep(time);
}
