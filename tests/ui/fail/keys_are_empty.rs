use lockattr::{Error, distributed_lock};

#[distributed_lock(keys = [])]
async fn transfer(from: u64, to: u64) -> Result<(), Error> {
    Ok(())
}

fn main() {}
