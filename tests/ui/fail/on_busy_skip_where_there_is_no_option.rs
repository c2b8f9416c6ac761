use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "nightly", on_busy = skip)]
async fn nightly() -> Result<(), Error> {
    Ok(())
}

fn main() {}
