use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "price:<id>", share_result = true, once_per = "1m", mode = shared, on_unavailable = run_unlocked)]
async fn price(id: u64) -> Result<u64, Error> {
    Ok(id)
}

#[distributed_lock(key = "price:<id>", share_result = true)]
fn plain(id: u64) -> Result<u64, Error> {
    Ok(id)
}

fn main() {}
