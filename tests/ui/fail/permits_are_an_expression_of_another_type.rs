use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", permits = slots)]
async fn restock(slots: usize) -> Result<(), Error> {
    Ok(())
}

fn main() {}
