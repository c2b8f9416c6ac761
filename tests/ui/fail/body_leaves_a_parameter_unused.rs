#![deny(unused_variables)]

use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "product:<id>")]
async fn restock(id: u64, quantity: u32) -> Result<(), Error> {
    Ok(())
}

fn main() {}
