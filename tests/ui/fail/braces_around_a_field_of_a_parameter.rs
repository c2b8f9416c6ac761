use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "order:{order.0:>8}")]
async fn restock(order: (u64,)) -> Result<(), Error> {
    Ok(())
}

fn main() {}
