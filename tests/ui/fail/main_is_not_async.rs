use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "program")]
fn main() -> Result<(), Error> {
    Ok(())
}
