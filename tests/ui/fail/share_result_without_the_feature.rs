use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "price:<id>", share_result = true)]
async fn price(id: u64) -> Result<u64, Error> {
    Ok(id)
}

fn main() {}
