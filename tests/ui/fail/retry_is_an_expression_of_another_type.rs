use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock", retry = tries)]
async fn restock(tries: usize) -> Result<(), Error> {
    Ok(())
}

fn main() {}
