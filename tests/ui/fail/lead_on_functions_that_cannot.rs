use std::future::Future;

use lockattr::{Error, distributed_lock};

struct Scheduler;

impl Scheduler {
    #[distributed_lock(key = "scheduler", lead = true)]
    async fn by_value(self) -> Result<(), Error> {
        Ok(())
    }

    #[distributed_lock(key = "scheduler", lead = true)]
    async fn by_mutable_reference(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

#[distributed_lock(key = "scheduler", lead = true)]
fn plain() -> Result<(), Error> {
    Ok(())
}

#[distributed_lock(key = "scheduler", lead = true)]
fn future() -> impl Future<Output = Result<(), Error>> {
    async { Ok(()) }
}

fn main() {}
