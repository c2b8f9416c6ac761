use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", max_hold = "3600")]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
