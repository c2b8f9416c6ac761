use lockattr::{Error, distributed_lock};

struct Connection;

#[distributed_lock(key = "scheduler", lead = true)]
async fn schedule(connection: Connection) -> Result<(), Error> {
    drop(connection);
    Ok(())
}

fn main() {}
