use lockattr::{Error, distributed_lock};

#[distributed_lock(
    key = "scheduler",
    lead = true,
    wait = "3s",
    retry = 3,
    retry_delay = "1s",
    hold_at_least = "1m",
    once_per = "22h",
    on_busy = skip,
    on_lost = ignore,
    on_unavailable = run_unlocked,
    mode = shared,
    reentrant = false,
    when = true,
    lease = lease
)]
async fn schedule() -> Result<(), Error> {
    Ok(())
}

#[distributed_lock(keys = ["a", "b"], lead = true, permits = 3)]
async fn schedule_both() -> Result<(), Error> {
    Ok(())
}

fn main() {}
