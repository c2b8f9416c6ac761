use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "product:<id>", on_lost = cancel)]
fn restock(id: u64) -> Result<u64, Error> {
    Ok(id)
}

fn main() -> Result<(), Error> {
    restock(7).map(drop)
}
