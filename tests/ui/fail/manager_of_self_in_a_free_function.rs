use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", manager = &self.locks)]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
