//! A world: built from its plan, run to its end, audited, and torn down.

mod faults;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lockattr::store::{AnyStore, MemoryStore};
use lockattr_history::Resources;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use turmoil::{Builder, Sim};

use crate::audit::audit;
use crate::client::Habit;
use crate::event_log::EventLog;
use crate::injected_bugs::{InjectedBug, WrongStore};
use crate::leaderless;
use crate::machine::{self, Calendar, set_time};
use crate::messages::Messages;
use crate::network::Network;
use crate::outcome::Outcome;
use crate::plan::{KINDS, Plan};
use crate::process::{Process, server_name};
use crate::running::Running;
use crate::server::Server;
use crate::term_log::TermLog;
use crate::term_resource::TermResources;
use crate::turn::LONGEST_TTL;
use crate::waits;

/// The step of the simulation, and the least time that a message takes.
const TICK: Duration = Duration::from_millis(2);

/// How long all work may take, including faults and wait budgets. A process that is not done by
/// then hangs.
const LIMIT: Duration = Duration::from_secs(40);

/// A deliberate mistake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wrong {
    /// No mistake.
    #[default]
    Nothing,
    /// In all servers.
    Servers(InjectedBug),
    /// In all clients.
    Clients(Habit),
    /// Each process takes two of the five servers for a majority: it asks only three of them.
    SmallQuorum,
}

/// What the processes of a world share outside of its servers.
#[derive(Debug, Default)]
struct Shared {
    /// What its locks protect.
    resources: Resources,
    /// What its leaders write to.
    term_resources: TermResources,
    event_log: EventLog,
    term_log: TermLog,
}

/// A running world.
struct World<'a> {
    plan: &'a Plan,
    sim: Sim<'a>,
    servers: Vec<Arc<Server>>,
    processes: Vec<Rc<Process>>,
    /// The current life of each process, if it is alive.
    running: Vec<Option<Running>>,
    /// Draws the order in which processes run.
    dice: StdRng,
    messages: Messages,
    term_resources: TermResources,
    injected: [u64; KINDS.len()],
}

/// Runs the world of this plan.
///
/// # Panics
///
/// If the simulation itself fails, or something in it panics.
#[must_use]
pub fn run(plan: &Plan, wrong: Wrong) -> Outcome {
    machine::start(plan.seed ^ 0x6c6f_636b);
    let shared = Shared::default();
    let mut world = World::build(plan, wrong, &shared);
    let hangs = world.run_to_end();
    // By then, leases that no process released have ended.
    world.run_for(LONGEST_TTL + Duration::from_millis(500));
    let left = world.audit();
    let mut findings = shared.resources.damage();
    findings.extend(hangs);
    findings.extend(left);
    findings.extend(waits::faults(plan, &shared.event_log));
    let (without_leader, replaced) = leaderless::faults(plan, &shared.term_log);
    findings.extend(without_leader);
    let mut history = Vec::new();
    for process in &world.processes {
        findings.append(&mut process.findings.borrow_mut());
        history.extend(process.history());
    }
    history.sort_by_key(|event| event.at);
    let (simulated, injected) = (world.sim.elapsed(), world.injected);
    world.processes.iter().for_each(|process| process.kill());
    drop(world);
    machine::stop();
    Outcome {
        seed: plan.seed,
        topology: plan.topology,
        history,
        findings,
        written: shared.resources.writes(),
        terms: shared.term_resources.events(),
        replaced,
        simulated,
        injected,
    }
}

impl<'a> World<'a> {
    fn build(plan: &'a Plan, wrong: Wrong, shared: &Shared) -> Self {
        let messages = Messages::default();
        let mut sim = Builder::new()
            .epoch(SystemTime::UNIX_EPOCH)
            .tick_duration(TICK)
            // `LIMIT` ends the simulation first.
            .simulation_duration(LIMIT * 2)
            .min_message_latency(Duration::from_millis(1))
            .max_message_latency(plan.latency)
            .tcp_capacity(1 << 16)
            .enable_random_order()
            .rng_seed(plan.seed)
            .build();
        let servers: Vec<_> = (plan.fast.iter().enumerate())
            .map(|(number, &fast)| {
                let store = match wrong {
                    Wrong::Servers(injected_bug) => AnyStore::new(WrongStore::new(injected_bug)),
                    _ => AnyStore::new(MemoryStore::new()),
                };
                let server = Server::new(store, fast, plan.service_time, messages.clone());
                let host = server.clone();
                sim.host(server_name(number), move || host.clone().run());
                server
            })
            .collect();
        let processes: Vec<_> = (plan.processes.iter().enumerate())
            .map(|(number, setup)| {
                let (network, system) = Network::new();
                sim.client(Process::name(number), system.run());
                let reached = match wrong {
                    Wrong::SmallQuorum => (0..3).map(|nth| (number * 2 + nth) % 5).collect(),
                    _ => (0..servers.len()).collect(),
                };
                let habit = if let Wrong::Clients(habit) = wrong { habit } else { Habit::Right };
                Rc::new(Process {
                    number,
                    setup: setup.clone(),
                    topology: plan.topology,
                    servers: reached,
                    habit,
                    response: plan.response,
                    works_until: plan.works_until,
                    seed: plan.seed,
                    network,
                    messages: messages.clone(),
                    resources: shared.resources.clone(),
                    event_log: shared.event_log.clone(),
                    term_resources: shared.term_resources.clone(),
                    term_log: shared.term_log.clone(),
                    calendar: Calendar::new(setup.ahead),
                    life: RefCell::default(),
                    recorders: RefCell::default(),
                    findings: RefCell::default(),
                    paused: Cell::default(),
                    done: Cell::new(false),
                })
            })
            .collect();
        let begin = |process| Some(Running::begin(process, Duration::ZERO));
        let running = processes.iter().map(begin).collect();
        let (dice, injected) = (StdRng::seed_from_u64(plan.seed), [0; KINDS.len()]);
        let term_resources = shared.term_resources.clone();
        Self { plan, sim, servers, processes, running, dice, messages, term_resources, injected }
    }

    /// Runs until all processes are done, or for `LIMIT`. Returns a finding for each process that
    /// hangs.
    fn run_to_end(&mut self) -> Vec<String> {
        let plan = self.plan;
        let begins = plan.faults.iter().map(|fault| (fault.at, true, &fault.trouble));
        let ends = plan.faults.iter().map(|fault| (fault.until, false, &fault.trouble));
        let mut changes: Vec<_> = begins.chain(ends).collect();
        changes.sort_by_key(|(at, ..)| *at);
        let mut changes = changes.into_iter().peekable();
        loop {
            while let Some((_, begins, trouble)) =
                changes.next_if(|(at, ..)| *at <= self.sim.elapsed())
            {
                if begins {
                    self.injected[trouble.kind()] += 1;
                    self.begin(trouble);
                } else {
                    self.end(trouble);
                }
            }
            self.step();
            let all_done = self.processes.iter().all(|process| process.done.get());
            if changes.peek().is_none() && all_done {
                return Vec::new();
            }
            if self.sim.elapsed() > LIMIT {
                let hang = self.processes.iter().filter(|process| !process.done.get());
                let name =
                    |process: &Rc<Process>| format!("{} hangs", Process::name(process.number));
                return hang.map(name).collect();
            }
        }
    }

    fn run_for(&mut self, time: Duration) {
        let until = self.sim.elapsed() + time;
        while self.sim.elapsed() < until {
            self.step();
        }
    }

    fn step(&mut self) {
        let mut steps = self.sim.step().map(drop);
        set_time(self.sim.elapsed());
        self.term_resources.deliver(self.sim.elapsed());
        let mut living: Vec<_> = self.running.iter_mut().flatten().collect();
        living.shuffle(&mut self.dice);
        for process in living {
            steps = steps.and_then(|()| process.step(TICK));
        }
        if let Err(error) = steps {
            panic!("seed {}: {error}", self.plan.seed);
        }
    }

    /// What is left in the servers.
    fn audit(&mut self) -> Vec<String> {
        let found = Rc::new(RefCell::new(None));
        let (result, messages) = (found.clone(), self.messages.clone());
        let servers = (0..self.servers.len()).map(server_name).collect();
        let keys = self.plan.keys();
        self.sim.client("auditor", async move {
            result.replace(Some(audit(servers, keys, messages).await));
            Ok(())
        });
        while found.borrow().is_none() {
            self.step();
        }
        found.take().expect("the audit is over")
    }
}
