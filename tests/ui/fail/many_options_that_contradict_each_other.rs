use lockattr::{Error, distributed_lock};

#[distributed_lock(
    key = "stock",
    ttl = "1h",
    max_hold = "1m",
    wait = "0s",
    retry = 3,
    retry_delay = "0s",
    when = quantity > 0,
    on_unavailable = run_unlocked,
    lease = lease,
)]
async fn restock(quantity: u32) -> Result<u32, Error> {
    lease.ensure_held()?;
    Ok(quantity)
}

fn main() {}
