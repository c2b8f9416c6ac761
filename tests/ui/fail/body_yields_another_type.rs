use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock")]
async fn count() -> Result<u32, Error> {
    let counted = 17;
    counted
}

fn main() {}
