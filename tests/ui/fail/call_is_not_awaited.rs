#![deny(unused_must_use)]

use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock")]
async fn restock() -> Result<(), Error> {
    Ok(())
}

#[tokio::main]
async fn main() {
    restock();
}
