use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", on_busy = return(0))]
async fn restock() -> Result<(), Error> {
    Ok(())
}

fn main() {}
