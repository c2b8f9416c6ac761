use lockattr::{Error, distributed_lock};

#[distributed_lock(kesy = ["account:<from>", "account:<to>"])]
async fn transfer(from: u64, to: u64) -> Result<(), Error> {
    Ok(())
}

fn main() {}
