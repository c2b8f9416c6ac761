//! Begins and ends the faults of a world.

use super::World;
use crate::plan::Trouble;
use crate::process::{Process, server_name};
use crate::running::Running;

impl World<'_> {
    pub(super) fn begin(&mut self, trouble: &Trouble) {
        if let Trouble::Kill(process) = trouble {
            self.processes[*process].kill();
            // Its connections end one by one in this step, in a fixed order. A dropped runtime
            // drops its tasks in an order that depends on how many tasks it ever had.
            self.step();
            self.running[*process] = None;
            return;
        }
        let sim = &mut self.sim;
        match trouble {
            Trouble::Partition(process, servers) => {
                links(*process, servers, |one, other| sim.partition(one, other));
            }
            Trouble::PartitionThere(process, servers) => {
                links(*process, servers, |one, other| sim.partition_oneway(one, other));
            }
            Trouble::PartitionBack(process, servers) => {
                links(*process, servers, |one, other| sim.partition_oneway(other, one));
            }
            Trouble::Hold(process, servers) => {
                links(*process, servers, |one, other| sim.hold(one, other));
            }
            Trouble::Slow(process, servers, latency) => {
                links(*process, servers, |one, other| {
                    sim.set_link_max_message_latency(one, other, *latency);
                });
            }
            Trouble::Kill(_) => {}
            Trouble::Pause(process) => {
                self.running[*process].iter_mut().for_each(Running::stop);
            }
            Trouble::PowerOff(server) => drop(self.servers[*server].power.send_replace(false)),
            Trouble::Calendar(process, micros) => {
                self.processes[*process].calendar.jump(*micros);
            }
            Trouble::ServerCalendar(server, micros) => {
                self.servers[*server].calendar.jump(*micros);
            }
        }
    }

    pub(super) fn end(&mut self, trouble: &Trouble) {
        let (sim, latency) = (&mut self.sim, self.plan.latency);
        match trouble {
            Trouble::Partition(process, servers) => {
                links(*process, servers, |one, other| sim.repair(one, other));
            }
            Trouble::PartitionThere(process, servers) => {
                links(*process, servers, |one, other| sim.repair_oneway(one, other));
            }
            Trouble::PartitionBack(process, servers) => {
                links(*process, servers, |one, other| sim.repair_oneway(other, one));
            }
            Trouble::Hold(process, servers) => {
                links(*process, servers, |one, other| sim.release(one, other));
            }
            Trouble::Slow(process, servers, _) => links(*process, servers, |one, other| {
                sim.set_link_max_message_latency(one, other, latency);
            }),
            Trouble::Kill(process) => {
                let begun = Running::begin(&self.processes[*process], sim.elapsed());
                self.running[*process] = Some(begun);
            }
            Trouble::Pause(process) => {
                let paused = self.running[*process].iter_mut().map(Running::resume).sum();
                self.processes[*process].record_pause(paused);
            }
            Trouble::PowerOff(server) => drop(self.servers[*server].power.send_replace(true)),
            Trouble::Calendar(..) | Trouble::ServerCalendar(..) => {}
        }
    }
}

/// Calls `apply` for each link between the process and the servers.
fn links(process: usize, servers: &[usize], mut apply: impl FnMut(String, String)) {
    for server in servers {
        apply(Process::name(process), server_name(*server));
    }
}
