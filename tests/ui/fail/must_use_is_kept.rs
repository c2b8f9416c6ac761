#![deny(unused_must_use)]

use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock")]
#[must_use = "it is somebody's stock"]
async fn restock() -> Result<(), Error> {
    Ok(())
}

#[tokio::main]
async fn main() {
    let _restocked = restock();
    restock();
}
