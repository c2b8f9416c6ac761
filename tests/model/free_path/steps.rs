//! What can happen next, and the states in which the model starts.

use super::fault::Fault;
use super::server::{Form, Server};
use super::setting::Setting;
use super::step::Step;
use super::world::{FLOOR, Link, World};
use crate::claims::{CLAIMS, KEYS, Phase, Process, Wrong};
use crate::search::Model;

impl Model for Setting {
    type State = World;
    type Step = Step;

    /// Every process either has a connection on which it has counted before, or has just started.
    fn starts(&self) -> Vec<World> {
        let counters = if self.slots { [FLOOR; KEYS] } else { [FLOOR, 0] };
        let server = Server { counters, ..Server::default() };
        let (raised, seen) = (counters.map(|counter| counter > 0), counters);
        let old = Link { raised, seen, ..Link::default() };
        let mut start = World {
            server,
            replica: if self.replica { server } else { Server::default() },
            links: [old; CLAIMS],
            clocks: counters,
            top: [FLOOR; KEYS],
            top_alone: [FLOOR; KEYS],
            faults: self.faults,
            ..World::default()
        };
        if !self.replica {
            return vec![start];
        }
        // The replica may lag from the start. A process that has just started has seen no token. A
        // proxy that hides a failover can repeat tokens of other processes, so there each process
        // has seen all tokens so far.
        let all_seen = self.kinds.contains(&Fault::Swap);
        let mut starts = Vec::new();
        for lag in 0..2 {
            let lagging = counters.map(|counter| if counter > 0 { counter + lag } else { 0 });
            (start.server.counters, start.clocks) = (lagging, lagging);
            (start.top, start.top_alone) = ([FLOOR + lag; KEYS], [FLOOR + lag; KEYS]);
            let old = Link { seen: if all_seen { lagging } else { seen }, ..old };
            for come in 0..1 << self.claims.len() {
                for (process, link) in start.links.iter_mut().enumerate() {
                    *link = if come >> process & 1 == 0 { old } else { Link::default() };
                }
                starts.push(start);
            }
        }
        starts
    }

    fn steps(&self, world: &World) -> Vec<(Step, World)> {
        let mut next = Vec::with_capacity(16);
        for claim in 0..self.claims.len() {
            self.act(world, claim, &mut next);
            self.keep(world, claim, &mut next);
        }
        for process in 0..self.claims.len() {
            self.connect(world, process, &mut next);
        }
        if self.reads {
            for key in 0..KEYS {
                let mut then = *world;
                self.read(&mut then, key);
                next.push((Step::Reads(key), then));
            }
        }
        if world.server.keys[0].form == Form::Foreign {
            let mut then = *world;
            then.server.keys[0].vanish();
            then.intruder = 0;
            next.push((Step::IntruderLeaves, then));
        }
        next.extend(self.replicate(world).map(|then| (Step::Replicates, then)));
        self.fail(world, &mut next);
        next.extend(self.tick(world).map(|then| (Step::Tick, then)));
        next
    }

    fn canonical(&self, world: World) -> World {
        self.one_of_alike(world)
    }

    fn wrong(&self, world: &World) -> Option<&'static str> {
        world.wrong.or_else(|| self.wrong_in(world)).map(Wrong::text)
    }
}

impl Setting {
    /// The steps of a process and its connection.
    fn connect(&self, world: &World, process: usize, next: &mut Vec<(Step, World)>) {
        let mut then = *world;
        let link = &mut then.links[process];
        match link.process {
            Process::Dead => return,
            Process::Stopped => {
                link.process = Process::Runs;
                next.push((Step::Resumes(process), then));
                return;
            }
            Process::Runs => {}
        }
        if link.cut {
            self.reconnect(&mut then, process);
            next.push((Step::Reconnects(process), then));
        } else if link.raised.contains(&true) {
            link.raised = [false; KEYS];
            next.push((Step::Heartbeat(process), then));
        }
    }

    /// Reconnects, after which waiters ask again.
    pub(crate) fn reconnect(&self, world: &mut World, process: usize) {
        world.links[process].cut = false;
        for claim in self.of_process(process) {
            if world.claims[claim].phase == Phase::Waiting {
                world.claims[claim].timer = 0;
            }
        }
    }
}
