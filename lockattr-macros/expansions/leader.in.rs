//! `lead`: the body runs once for each term.

use lockattr::Error;

/// A scheduler.
pub struct Scheduler {
    pub region: String,
}

impl Scheduler {
    /// Leads.
    #[lockattr::distributed_lock(key = "scheduler:<self.region>", lead = true, progress_within = "30s", term = term)]
    pub async fn run(&self, mut rounds: u32, (name, _): (&str, u8)) -> Result<usize, Error> {
        while rounds > 0 {
            rounds -= 1;
            term.progress();
        }
        Ok(self.region.len() + name.len())
    }
}
