use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "flat:<lease>", lease = lease)]
async fn sign(lease: u64) -> Result<u64, Error> {
    Ok(lease.fencing_token().into())
}

fn main() {}
