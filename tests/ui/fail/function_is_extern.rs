use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "product:<id>")]
async extern "C" fn restock(id: u64) -> Result<u64, Error> {
    Ok(id)
}

fn main() {}
