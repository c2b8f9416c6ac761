use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", manager = name)]
async fn restock(name: &str) -> Result<(), Error> {
    Ok(())
}

fn main() {}
