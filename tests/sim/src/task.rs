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
use tokio::time::sleep;

use crate::event_log::Open;
use crate::holding::Holding;
use crate::life::Life;
use crate::machine::elapsed;
use crate::process::Process;
use crate::turn::{End, Part, Turn};

/// How much longer than its wait budget an acquisition may run, without the pauses of its process:
/// for the last reply, and for releasing what it may have been granted, both on servers that do not
/// reply.
const GRACE: Duration = Duration::from_secs(3);

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
        while elapsed() < self.process.works_until {
            sleep(Duration::from_millis(dice.random_range(0..80))).await;
            let turn = Turn::draw(&mut dice);
            turns += 1;
            // Each turn is a call chain of its own: the unknown outcome of an earlier turn does not
            // concern it.
            self.run_turn(self.nth << 16 | turns, &turn).await;
        }
    }

    /// Takes one turn at its time.
    pub(crate) async fn run_part(self, part: Part) {
        sleep(part.at.saturating_sub(elapsed())).await;
        let chain = self.nth << 16;
        let rivals = (1..).zip(&part.rivals).map(|(nth, rival)| self.run_turn(chain | nth, rival));
        let rivals = async {
            join_all(rivals).await;
            pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = self.run_turn(chain, &part.turn) => {}
            () = rivals => {}
        }
    }

    /// Takes a turn, and drops its future at its cancellation, even if it could have gone on at
    /// that moment.
    async fn run_turn(&self, chain: u32, turn: &Turn) {
        let acquired = self.acquire(chain, turn);
        match turn.cancelled {
            Some(limit) => tokio::select! {
                biased;
                () = sleep(limit) => {}
                () = acquired => {}
            },
            None => acquired.await,
        }
    }

    async fn acquire(&self, chain: u32, turn: &Turn) {
        if turn.end == End::Scoped {
            return self.acquire_scoped(chain, turn).await;
        }
        let calls = self.invoke(chain, turn);
        let (began, wait_note) =
            (self.process.ran(), self.process.event_log.begin_wait(self.process.number, turn));
        let outcome = match &turn.keys[..] {
            [key] if turn.wait.is_none() => {
                let acquired = self.manager.try_acquire(key, turn.options.clone()).await;
                acquired.map_err(Some).and_then(|guard| guard.ok_or(None))
            }
            keys => self.manager.acquire_all(keys, turn.options.clone()).await.map_err(Some),
        };
        self.waited(turn, began);
        let guard = match outcome {
            Ok(guard) => guard,
            Err(error) => return self.refused(calls, &wait_note, error.as_ref()),
        };
        drop(wait_note);
        let holding = self.granted(calls, chain, turn, &guard);
        let lease = Lease::clone(&guard);
        let is_lost = tokio::select! {
            biased;
            () = lease.lost() => true,
            () = self.body(turn, &holding, &lease, Some(&guard)) => false,
        };
        if is_lost {
            holding.record_loss();
            drop(guard);
        } else if turn.end == End::Dropped {
            // Recorded before it happens.
            drop(holding);
            drop(guard);
        } else {
            let releases = holding.begin_release();
            match guard.release().await {
                Ok(()) => releases.into_iter().for_each(|call| call.ok(None)),
                Err(Error::Lost { .. }) => releases.into_iter().for_each(Call::fail),
                Err(Error::Store { .. }) => releases.into_iter().for_each(Call::unknown),
                Err(error) => self.report(format!("a release returned {error:?}")),
            }
        }
    }

    /// The same with `with_lock`, which drops the body when the lease is lost, and releases the
    /// lock.
    async fn acquire_scoped(&self, chain: u32, turn: &Turn) {
        let wait_note = self.process.event_log.begin_wait(self.process.number, turn);
        let mut calls = Some((self.invoke(chain, turn), wait_note));
        let began = self.process.ran();
        let body = async |lease: &Lease| {
            self.waited(turn, began);
            let (calls, wait_note) = calls.take().expect("a body runs once");
            drop(wait_note);
            let holding = self.granted(calls, chain, turn, lease);
            self.body(turn, &holding, lease, None).await;
        };
        let outcome = self.manager.with_lock(turn.keys[0], turn.options.clone(), body).await;
        match (outcome, calls) {
            (Ok(()) | Err(Error::Lost { .. }), None) => {}
            (Err(error), Some((calls, wait_note))) => {
                self.waited(turn, began);
                self.refused(calls, &wait_note, Some(&error));
            }
            (outcome, _) => self.report(format!("`with_lock` returned {outcome:?}")),
        }
    }

    fn invoke(&self, chain: u32, turn: &Turn) -> Vec<Call> {
        let op = Op::Acquire(turn.mode);
        turn.keys.iter().map(|key| self.recorder.invoke(chain, key, op)).collect()
    }

    fn granted(&self, calls: Vec<Call>, chain: u32, turn: &Turn, lease: &Lease) -> Holding {
        let fence = lease.fencing_token().get();
        calls.into_iter().for_each(|call| call.ok(Some(fence)));
        let note = self.process.event_log.begin_hold(self.process.number, turn);
        Holding::new(self.recorder.clone(), self.life.clone(), chain, &turn.keys, note)
    }

    fn refused(&self, calls: Vec<Call>, wait_note: &Open, error: Option<&Error>) {
        match error {
            None | Some(Error::Contended { .. } | Error::Lost { .. } | Error::ShutDown { .. }) => {
                calls.into_iter().for_each(Call::fail);
            }
            Some(error @ Error::Store { .. }) => {
                wait_note.set_failed(error);
                calls.into_iter().for_each(Call::unknown);
            }
            Some(error) => self.report(format!("an acquire returned {error:?}")),
        }
    }

    fn waited(&self, turn: &Turn, began: Duration) {
        let (waited, wait) = (self.process.ran() - began, turn.wait.unwrap_or_default());
        if waited > wait + GRACE {
            self.report(format!("{:?} with a wait of {wait:?} took {waited:?}", turn.keys));
        }
    }

    fn report(&self, finding: impl std::fmt::Display) {
        let name = Process::name(self.process.number);
        self.process.findings.borrow_mut().push(format!("{name}: {finding}"));
    }
}
