//! A task of a process: takes its turns, and records its requests and their results.

mod body;

use std::future::pending;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::join_all;
use lockattr::{Error, Lease, LockManager};
use lockattr_history::{Call, Op, Recorder};
use rand::RngExt;
use rand::rngs::StdRng;
use tokio::time::{Instant, sleep};

use crate::event_log::Open;
use crate::holding::Holding;
use crate::life::Life;
use crate::machine::elapsed;
use crate::process::Process;
use crate::turn::{End, Part, Turn};

/// How much longer than its wait budget an acquisition may take: for the last reply, and for
/// releasing what it may have been granted, both on servers that do not reply.
const AND_NO_LONGER: Duration = Duration::from_secs(3);

/// A task of a process.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) nth: u32,
    pub(crate) process: Rc<Process>,
    pub(crate) manager: LockManager,
    pub(crate) recorder: Recorder,
    pub(crate) life: Life,
}

impl Task {
    pub(crate) async fn run(self, mut dice: StdRng) {
        let mut turns = 0;
        while elapsed() < self.process.works {
            sleep(Duration::from_millis(dice.random_range(0..80))).await;
            let turn = Turn::draw(&mut dice);
            turns += 1;
            // Each turn is a call chain of its own: the unknown outcome of an earlier turn does not
            // concern it.
            self.takes(self.nth << 16 | turns, &turn).await;
        }
    }

    /// Takes one turn at its time.
    pub(crate) async fn plays(self, part: Part) {
        sleep(part.at.saturating_sub(elapsed())).await;
        let chain = self.nth << 16;
        let rivals = (1..).zip(&part.rivals).map(|(nth, rival)| self.takes(chain | nth, rival));
        let rivals = async {
            join_all(rivals).await;
            pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = self.takes(chain, &part.turn) => {}
            () = rivals => {}
        }
    }

    /// Takes a turn, and drops its future at its cancellation, even if it could have gone on at
    /// that moment.
    async fn takes(&self, chain: u32, turn: &Turn) {
        let taken = self.take(chain, turn);
        match turn.cancelled {
            Some(limit) => tokio::select! {
                biased;
                () = sleep(limit) => {}
                () = taken => {}
            },
            None => taken.await,
        }
    }

    async fn take(&self, chain: u32, turn: &Turn) {
        if turn.end == End::Scoped {
            return self.take_scoped(chain, turn).await;
        }
        let asked = self.asks(chain, turn);
        let (began, waits) =
            (Instant::now(), self.process.event_log.waits(self.process.number, turn));
        let outcome = match &turn.keys[..] {
            [key] if turn.wait.is_none() => {
                let answer = self.manager.try_acquire(key, turn.options.clone()).await;
                answer.map_err(Some).and_then(|guard| guard.ok_or(None))
            }
            keys => self.manager.acquire_all(keys, turn.options.clone()).await.map_err(Some),
        };
        self.waited(turn, began);
        let guard = match outcome {
            Ok(guard) => guard,
            Err(error) => return self.refused(asked, &waits, error.as_ref()),
        };
        drop(waits);
        let holding = self.granted(asked, chain, turn, &guard);
        let lease = Lease::clone(&guard);
        let is_lost = tokio::select! {
            biased;
            () = lease.lost() => true,
            () = self.body(turn, &holding, &lease, Some(&guard)) => false,
        };
        if is_lost {
            holding.lost();
            drop(guard);
        } else if turn.end == End::Dropped {
            // Recorded before it happens.
            drop(holding);
            drop(guard);
        } else {
            let releases = holding.releases();
            match guard.release().await {
                Ok(()) => releases.into_iter().for_each(|call| call.ok(None)),
                Err(Error::Lost { .. }) => releases.into_iter().for_each(Call::fail),
                Err(Error::Store { .. }) => releases.into_iter().for_each(Call::unknown),
                Err(error) => self.finds(format!("a release returned {error:?}")),
            }
        }
    }

    /// The same with `with_lock`, which drops the body when the lease is lost, and releases the
    /// lock.
    async fn take_scoped(&self, chain: u32, turn: &Turn) {
        let waits = self.process.event_log.waits(self.process.number, turn);
        let mut asked = Some((self.asks(chain, turn), waits));
        let began = Instant::now();
        let body = async |lease: &Lease| {
            self.waited(turn, began);
            let (asked, waits) = asked.take().expect("a body runs once");
            drop(waits);
            let holding = self.granted(asked, chain, turn, lease);
            self.body(turn, &holding, lease, None).await;
        };
        let outcome = self.manager.with_lock(turn.keys[0], turn.options.clone(), body).await;
        match (outcome, asked) {
            (Ok(()) | Err(Error::Lost { .. }), None) => {}
            (Err(error), Some((asked, waits))) => {
                self.waited(turn, began);
                self.refused(asked, &waits, Some(&error));
            }
            (outcome, _) => self.finds(format!("`with_lock` returned {outcome:?}")),
        }
    }

    fn asks(&self, chain: u32, turn: &Turn) -> Vec<Call> {
        let op = Op::Acquire(turn.mode);
        turn.keys.iter().map(|key| self.recorder.invoke(chain, key, op)).collect()
    }

    fn granted(&self, asked: Vec<Call>, chain: u32, turn: &Turn, lease: &Lease) -> Holding {
        let fence = lease.fencing_token().get();
        asked.into_iter().for_each(|call| call.ok(Some(fence)));
        let note = self.process.event_log.holds(self.process.number, turn);
        Holding::new(self.recorder.clone(), self.life.clone(), chain, &turn.keys, note)
    }

    fn refused(&self, asked: Vec<Call>, waits: &Open, error: Option<&Error>) {
        match error {
            None | Some(Error::Contended { .. } | Error::Lost { .. } | Error::ShutDown { .. }) => {
                asked.into_iter().for_each(Call::fail);
            }
            Some(error @ Error::Store { .. }) => {
                waits.fails(error);
                asked.into_iter().for_each(Call::unknown);
            }
            Some(error) => self.finds(format!("an acquire returned {error:?}")),
        }
    }

    fn waited(&self, turn: &Turn, began: Instant) {
        let (waited, wait) = (began.elapsed(), turn.wait.unwrap_or_default());
        if waited > wait + AND_NO_LONGER {
            self.finds(format!("{:?} with a wait of {wait:?} took {waited:?}", turn.keys));
        }
    }

    fn finds(&self, finding: impl std::fmt::Display) {
        let name = Process::name(self.process.number);
        self.process.findings.borrow_mut().push(format!("{name}: {finding}"));
    }
}
