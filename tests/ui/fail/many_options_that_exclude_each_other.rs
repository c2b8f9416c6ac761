use lockattr::{Error, distributed_lock};

#[distributed_lock(
    key = "stock",
    keys = ["stock", "<shelf>"],
    ttl = "1s",
    renew = false,
    max_hold = "2s",
    hold_at_least = "3s",
    permits = 0,
    mode = shared,
)]
async fn restock(quantity: u32) -> Result<u32, Error> {
    Ok(quantity)
}

fn main() {}
