//! Runs a process on a runtime of its own, which is driven step by step, outside of the simulated
//! host.
//!
//! So a process can be paused: its tasks are not polled and its timers do not fire, while the
//! network, the servers and their clocks go on. When it resumes, its clock has jumped, as after
//! `SIGSTOP` and `SIGCONT`.

use std::rc::Rc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinHandle, LocalSet};
use tokio::time::{advance, sleep};

use crate::machine::record_start;
use crate::process::Process;

/// One life of a process. Dropping it drops everything in its memory.
#[derive(Debug)]
pub(crate) struct Running {
    runtime: Runtime,
    local: LocalSet,
    software: Option<JoinHandle<turmoil::Result>>,
    /// While the process is paused: for how long it has been.
    paused_for: Option<Duration>,
}

impl Running {
    /// Begins a life of `process`, at this time of the simulation.
    ///
    /// # Panics
    ///
    /// If the runtime cannot be built.
    pub(crate) fn begin(process: &Rc<Process>, at: Duration) -> Self {
        let mut builder = Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build().expect("a runtime");
        // Timers count whole milliseconds.
        runtime.block_on(async { sleep(Duration::from_millis(1)).await });
        let local = LocalSet::new();
        let software = {
            let _inside = runtime.enter();
            record_start(at);
            local.spawn_local(process.clone().run())
        };
        Self { runtime, local, software: Some(software), paused_for: None }
    }

    /// Lets this much time pass for the process.
    ///
    /// # Errors
    ///
    /// The error of its software.
    pub(crate) fn step(&mut self, time: Duration) -> turmoil::Result {
        if let Some(paused_for) = &mut self.paused_for {
            *paused_for += time;
            return Ok(());
        }
        self.runtime.block_on(self.local.run_until(async { sleep(time).await }));
        match self.software.take_if(|software| software.is_finished()) {
            Some(software) => self.runtime.block_on(software)?,
            None => Ok(()),
        }
    }

    /// Pauses the process.
    pub(crate) fn stop(&mut self) {
        self.paused_for.get_or_insert_default();
    }

    /// Resumes the process: its clock jumps before anything in it is polled. Returns by how much.
    pub(crate) fn resume(&mut self) -> Duration {
        let paused_for = self.paused_for.take().unwrap_or_default();
        self.runtime.block_on(advance(paused_for));
        paused_for
    }
}
