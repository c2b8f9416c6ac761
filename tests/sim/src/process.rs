//! A process: a manager, tasks that acquire locks, and an end.

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::rc::Rc;
use std::time::Duration;

use lockattr::LockManager;
use lockattr::store::{AnyStore, RedlockStore};
use lockattr_history::{Event, Recorder, Resources};
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::client::{Habit, WireStore};
use crate::event_log::EventLog;
use crate::leader::Leader;
use crate::life::Life;
use crate::machine::{Calendar, clock, elapsed};
use crate::messages::Messages;
use crate::network::Network;
use crate::plan::{Setup, Topology};
use crate::task::Task;
use crate::term_log::TermLog;
use crate::term_resource::TermResources;

/// How long a process that has released everything stays alive to send its releases.
const LINGERS: Duration = Duration::from_secs(3);

/// The same after a campaign. A lease that it does not release ends before the audit.
const LEADER_LINGERS: Duration = Duration::from_secs(1);

/// A place for a process. When the process dies, another begins there.
#[derive(Debug)]
pub(crate) struct Process {
    /// The number of its place.
    pub(crate) number: usize,
    /// Its setup.
    pub(crate) setup: Setup,
    /// The topology of its servers.
    pub(crate) topology: Topology,
    /// The numbers of the servers that it asks.
    pub(crate) servers: Vec<usize>,
    /// How it handles replies.
    pub(crate) habit: Habit,
    /// How long it waits for a reply.
    pub(crate) response: Duration,
    /// Until when it begins new work.
    pub(crate) works_until: Duration,
    /// The seed that its work is drawn from.
    pub(crate) seed: u64,
    /// Its access to the network.
    pub(crate) network: Network,
    /// The messages of its world.
    pub(crate) messages: Messages,
    /// What its locks protect.
    pub(crate) resources: Resources,
    /// What its leaders write to.
    pub(crate) term_resources: TermResources,
    /// Its calendar.
    pub(crate) calendar: Calendar,
    /// The waits and holds of its tasks.
    pub(crate) event_log: EventLog,
    /// The campaigns and terms of its leaders.
    pub(crate) term_log: TermLog,
    /// Its current life.
    pub(crate) life: RefCell<Life>,
    /// For how long it has been paused in all.
    pub(crate) paused: Cell<Duration>,
    /// The history of each of its lives.
    pub(crate) recorders: RefCell<Vec<Recorder>>,
    /// Violations that its tasks found.
    pub(crate) findings: RefCell<Vec<String>>,
    /// Whether it has done its work.
    pub(crate) done: Cell<bool>,
}

impl Process {
    /// Its name in the network.
    #[must_use]
    pub(crate) fn name(number: usize) -> String {
        format!("process-{number}")
    }

    /// Records that it did not run for so long.
    pub(crate) fn record_pause(&self, time: Duration) {
        self.paused.set(self.paused.get() + time);
    }

    /// How long it has run, by the clock of the simulation.
    pub(crate) fn ran(&self) -> Duration {
        elapsed() - self.paused.get()
    }

    /// What it does in each of its lives.
    ///
    /// # Errors
    ///
    /// None: faults panic.
    pub(crate) async fn run(self: Rc<Self>) -> turmoil::Result {
        let life = Life::default();
        self.life.replace(life.clone());
        self.calendar.use_here();
        let lives = self.recorders.borrow().len();
        // A place has up to 1000 lives, so each life has a number of its own.
        let number = u32::try_from(self.number * 1000 + lives).expect("few");
        let recorder = Recorder::in_memory(number, clock);
        self.recorders.borrow_mut().push(recorder.clone());
        let setup = &self.setup;
        let manager = LockManager::builder()
            .store(self.store(&life))
            .service(Self::name(self.number))
            .linger(setup.linger)
            .max_handoffs(setup.max_handoffs)
            .max_handoff_time(setup.max_handoff_time)
            .shutdown_timeout(Duration::from_secs(1))
            .build()?;
        let mut tasks = JoinSet::new();
        let task = |nth| Task {
            nth,
            process: self.clone(),
            manager: manager.clone(),
            recorder: recorder.clone(),
            life: life.clone(),
        };
        for nth in 0..setup.tasks {
            let dice = (self.seed << 16) ^ u64::from(number << 4 | nth);
            tasks.spawn_local(task(nth).run(StdRng::seed_from_u64(dice)));
        }
        let parts = setup.parts.iter().filter(|_| lives == 0);
        for (nth, part) in (setup.tasks..).zip(parts) {
            tasks.spawn_local(task(nth).run_part(part.clone()));
        }
        let mut leaders = JoinSet::new();
        for (nth, campaign) in (0..).zip(&setup.campaigns) {
            let leader = Leader::new((number, nth), campaign, &self, &manager, &recorder);
            leaders.spawn_local(leader.run());
        }
        while let Some(ended) = tasks.join_next().await {
            ended?;
        }
        if !leaders.is_empty() {
            sleep(self.works_until.saturating_sub(elapsed())).await;
        }
        if setup.shutdown_at_end {
            manager.shutdown().await;
        } else {
            leaders.abort_all();
        }
        while let Some(ended) = leaders.join_next().await {
            ended.or_else(|error| if error.is_cancelled() { Ok(()) } else { Err(error) })?;
        }
        drop(manager);
        sleep(if setup.campaigns.is_empty() { LINGERS } else { LEADER_LINGERS }).await;
        self.done.set(true);
        pending().await
    }

    /// Kills the process: nothing that is still in its memory counts from now on.
    pub(crate) fn kill(&self) {
        self.life.borrow().end();
        self.done.set(false);
    }

    /// Returns what all of its lives did.
    #[must_use]
    pub(crate) fn history(&self) -> Vec<Event> {
        self.recorders.borrow().iter().flat_map(Recorder::events).collect()
    }

    fn store(&self, life: &Life) -> AnyStore {
        let server = |server: &usize| {
            let (network, messages) = (self.network.clone(), self.messages.clone());
            let address = server_name(*server);
            let store = WireStore::new(
                &address,
                network,
                messages,
                life.clone(),
                self.habit,
                self.response,
            );
            AnyStore::new(store)
        };
        let mut servers = self.servers.iter().map(server);
        match self.topology {
            Topology::Alone => servers.next().expect("it sends its request to one server"),
            Topology::Redlock => AnyStore::new(RedlockStore::new(servers).expect("enough servers")),
        }
    }
}

/// A server's name in the network.
#[must_use]
pub(crate) fn server_name(number: usize) -> String {
    format!("server-{number}")
}
