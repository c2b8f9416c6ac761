use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "scheduler", term = term)]
async fn schedule() -> Result<(), Error> {
    Ok(())
}

#[distributed_lock(key = "scheduler", lead = true, term = region)]
async fn schedule_in(region: u32) -> Result<(), Error> {
    Ok(())
}

fn main() {}
