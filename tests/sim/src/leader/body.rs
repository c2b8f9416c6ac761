//! The body of a term: writes to the resource, and records whether the resource refuses it.

use std::cell::RefCell;
use std::future::pending;
use std::rc::Rc;

use lockattr::Term;
use lockattr_history::{Op, TermStep};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::Leader;
use crate::campaign::{End, Manner};
use crate::machine::elapsed;
use crate::term_log::Open;
use crate::term_resource::{Leads, Write};

/// A body that runs. Dropping it records the end of the term.
pub(super) struct Body {
    writer: Writer,
    note: Open,
    chain: u32,
}

/// Writes for a term.
#[derive(Clone)]
struct Writer {
    leader: Rc<Leader>,
    term: Term,
    leads: Leads,
    /// The writes whose answers the leader has not read.
    sent: Rc<RefCell<Vec<Rc<Write>>>>,
}

impl Body {
    pub(super) fn begin(leader: &Rc<Leader>, term: Term) -> Self {
        let process = &leader.process;
        let (key, number) = (leader.campaign.key, term.number().get());
        let leads = Leads { key, process: leader.number, term: number };
        process.term_resources.record(leads, TermStep::Began);
        leader.acquiring.take().into_iter().for_each(|call| call.ok(Some(number)));
        let note = process.term_log.begin_term(process.number, &leader.campaign);
        let writer = Writer { leader: leader.clone(), term, leads, sent: Rc::default() };
        Self { writer, note, chain: leader.chain.get() }
    }

    pub(super) async fn run(self, manner: Manner) -> Result<(), ()> {
        let Writer { leader, term, .. } = &self.writer;
        // Dropped before this body, whose drop records that the term has ended.
        let mut beside = JoinSet::new();
        if leader.campaign.writes_beside {
            let writer = self.writer.clone();
            beside.spawn_local(async move {
                loop {
                    writer.write();
                    sleep(writer.leader.campaign.every).await;
                }
            });
        }
        let ends = Instant::now() + manner.after;
        loop {
            if leader.life.is_over() {
                pending::<()>().await;
            }
            let is_over = Instant::now() >= ends;
            match manner.end {
                End::Hangs if is_over => pending().await,
                End::Resigns if is_over => term.resign(),
                End::Returns if is_over => return Ok(()),
                End::Fails if is_over => return Err(()),
                _ => {}
            }
            self.check();
            if !leader.campaign.writes_beside {
                self.writer.write();
            }
            if !(is_over && manner.end == End::FallsSilent) {
                term.progress();
                self.note.progress();
            }
            sleep(leader.campaign.every).await;
        }
    }

    /// Records whether the leader holds its lease.
    fn check(&self) {
        let Writer { leader, term, leads, .. } = &self.writer;
        let call = leader.recorder.invoke(self.chain, leads.key, Op::Check);
        if term.ensure_held().is_ok() { call.ok(None) } else { call.fail() }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        let Writer { leader, leads, sent, .. } = &self.writer;
        if leader.life.is_over() {
            // What a killed process has sent still arrives.
            return;
        }
        self.writer.read_answers();
        sent.borrow().iter().for_each(|write| write.withdraw());
        leader.process.term_resources.record(*leads, TermStep::Ended);
        leader.recorder.invoke(self.chain, leads.key, Op::Release).unknown();
        leader.acquire();
    }
}

impl Writer {
    /// Writes under the number of the term, whatever its lease.
    fn write(&self) {
        let Self { leader, leads, sent, .. } = self;
        if leader.life.is_over() {
            return;
        }
        self.read_answers();
        let resources = &leader.process.term_resources;
        match leader.draw(|dice| leader.campaign.draw_delay(dice)) {
            Some(delay) => {
                let write = resources.send(*leads, &leader.life, elapsed() + delay);
                sent.borrow_mut().push(write);
            }
            None if resources.write(*leads) => {}
            None => self.refused(),
        }
    }

    fn read_answers(&self) {
        let mut refused = 0;
        self.sent.borrow_mut().retain(|write| {
            let answer = write.answer();
            refused += usize::from(answer == Some(false));
            answer.is_none()
        });
        (0..refused).for_each(|_| self.refused());
    }

    /// Asks the leader for its lease only now, when the resource has refused its write: if it holds
    /// it even now, two led at once.
    fn refused(&self) {
        let held = self.term.ensure_held().is_ok();
        self.leader.process.term_resources.record(self.leads, TermStep::Refused { held });
    }
}
