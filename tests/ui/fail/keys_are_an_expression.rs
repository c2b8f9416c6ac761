use lockattr::{Error, distributed_lock};

#[distributed_lock(keys = accounts.iter())]
async fn merge(accounts: &[u64]) -> Result<(), Error> {
    Ok(())
}

fn main() {}
