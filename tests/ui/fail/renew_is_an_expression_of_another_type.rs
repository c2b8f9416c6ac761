use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", renew = times)]
async fn restock(times: u32) -> Result<(), Error> {
    Ok(())
}

fn main() {}
