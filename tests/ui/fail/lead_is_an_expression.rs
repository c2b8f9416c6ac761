use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "scheduler", lead = leads)]
async fn schedule(leads: bool) -> Result<(), Error> {
    Ok(())
}

fn main() {}
