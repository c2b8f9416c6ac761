use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "<shop><id>")]
async fn restock(shop: &str, id: u64) -> Result<(), Error> {
    Ok(())
}

fn main() {}
