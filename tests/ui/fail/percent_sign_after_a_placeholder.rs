use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "<share>%<shop>")]
async fn restock(share: u8, shop: &str) -> Result<(), Error> {
    Ok(())
}

fn main() {}
