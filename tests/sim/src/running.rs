//! What runs a process: a runtime of its own that is driven step by step, outside of the simulated
//! host. So a process can be stopped: its tasks are not polled and its timers do not fire, while the
//! network, the servers and their clocks go on. When it goes on, its clock has jumped, as it has after
//! `SIGSTOP` and `SIGCONT`.

use std::rc::Rc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinHandle, LocalSet};
use tokio::time::{advance, sleep};

use crate::machine::runs_since;
use crate::process::Process;

/// One life of a process. Dropped, all that was in its memory is cleared away.
#[derive(Debug)]
pub(crate) struct Running {
    runtime: Runtime,
    local: LocalSet,
    software: Option<JoinHandle<turmoil::Result>>,
    /// How long it has stood still, while it does.
    stands: Option<Duration>,
}

impl Running {
    /// Begins a life of `process`, so long after the simulation began.
    ///
    /// # Panics
    ///
    /// If the system has no runtime for it.
    pub(crate) fn begin(process: &Rc<Process>, at: Duration) -> Self {
        let mut builder = Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build().expect("a runtime");
        // Timers count whole milliseconds.
        runtime.block_on(async { sleep(Duration::from_millis(1)).await });
        let local = LocalSet::new();
        let software = {
            let _inside = runtime.enter();
            runs_since(at);
            local.spawn_local(process.clone().run())
        };
        Self { runtime, local, software: Some(software), stands: None }
    }

    /// Lets so much time pass for it.
    ///
    /// # Errors
    ///
    /// What its software failed with.
    pub(crate) fn step(&mut self, time: Duration) -> turmoil::Result {
        if let Some(stands) = &mut self.stands {
            *stands += time;
            return Ok(());
        }
        self.runtime.block_on(self.local.run_until(async { sleep(time).await }));
        match self.software.take_if(|software| software.is_finished()) {
            Some(software) => self.runtime.block_on(software)?,
            None => Ok(()),
        }
    }

    /// It stands still from now on.
    pub(crate) fn stop(&mut self) {
        self.stands.get_or_insert_default();
    }

    /// It goes on: its clock jumps before anything in it is polled.
    pub(crate) fn go_on(&mut self) {
        if let Some(stood) = self.stands.take() {
            self.runtime.block_on(advance(stood));
        }
    }
}
