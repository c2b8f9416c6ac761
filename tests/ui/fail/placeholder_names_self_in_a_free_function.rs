use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "region:<self.region>")]
async fn restock(region: &str) -> Result<usize, Error> {
    Ok(region.len())
}

fn main() {}
