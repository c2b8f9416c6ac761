//! A task that campaigns, and leads whenever its process has the lock.

mod body;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use lockattr::{Error, LockManager, Term};
use lockattr_history::{Call, Mode, Op, Recorder};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::sleep;

use crate::campaign::{Campaign, Manner};
use crate::life::Life;
use crate::machine::elapsed;
use crate::process::Process;

/// The bits of a call chain's number above those of a task's turns, which are in `task.rs`.
const CHAINS: u32 = 1 << 24;

/// A task that campaigns.
#[derive(Debug)]
pub(crate) struct Leader {
    process: Rc<Process>,
    campaign: Campaign,
    manager: LockManager,
    recorder: Recorder,
    life: Life,
    /// The number of that life.
    number: u32,
    /// Draws how terms go.
    dice: RefCell<StdRng>,
    /// The call chain of the current term, and the acquisition of the next.
    chain: Cell<u32>,
    acquiring: RefCell<Option<Call>>,
}

impl Leader {
    pub(crate) fn new(
        (number, nth): (u32, u32),
        campaign: &Campaign,
        process: &Rc<Process>,
        manager: &LockManager,
        recorder: &Recorder,
    ) -> Rc<Self> {
        let life = process.life.borrow().clone();
        let seed = (process.seed << 20) ^ u64::from(number << 4 | nth) ^ 0x6c65_6164;
        Rc::new(Self {
            process: process.clone(),
            campaign: campaign.clone(),
            manager: manager.clone(),
            recorder: recorder.clone(),
            life,
            number,
            dice: RefCell::new(StdRng::seed_from_u64(seed)),
            chain: Cell::new(CHAINS * (nth + 1)),
            acquiring: RefCell::default(),
        })
    }

    /// Campaigns until the process ends its work.
    pub(crate) async fn run(self: Rc<Self>) {
        let process = &self.process;
        while elapsed() < process.works_until {
            let note = process.term_log.begin_campaign(process.number, &self.campaign);
            self.acquire();
            let (key, options) = (self.campaign.key, self.campaign.options());
            let led = self.manager.lead(key, options, |term| {
                let manner = self.campaign.draw_term(&mut self.dice.borrow_mut());
                self.clone().lead(term, manner)
            });
            let led = led.await;
            drop(note);
            self.acquiring.take().into_iter().for_each(Call::unknown);
            match led {
                // A body returned, also with an error.
                Ok(Ok(()) | Err(())) => {}
                Err(Error::Lost { .. }) => {}
                Err(Error::ShutDown { .. }) if elapsed() >= process.works_until => return,
                Err(error) => self.report(&format!("a campaign returned {error:?}")),
            }
            let pause = self.draw(|dice| dice.random_range(0..200));
            sleep(Duration::from_millis(pause)).await;
        }
    }

    /// Leads for a term, until the body ends by itself or is dropped.
    async fn lead(self: Rc<Self>, term: Term, manner: Manner) -> Result<(), ()> {
        body::Body::begin(&self, term).run(manner).await
    }

    /// Records that the process wants to lead from now on, in a call chain of its own.
    fn acquire(&self) {
        let chain = self.chain.get() + 1;
        self.chain.set(chain);
        let call = self.recorder.invoke(chain, self.campaign.key, Op::Acquire(Mode::Exclusive));
        self.acquiring.replace(Some(call));
    }

    fn draw<T>(&self, draw: impl FnOnce(&mut StdRng) -> T) -> T {
        draw(&mut self.dice.borrow_mut())
    }

    fn report(&self, finding: &str) {
        let name = Process::name(self.process.number);
        self.process.findings.borrow_mut().push(format!("{name}: {finding}"));
    }
}
