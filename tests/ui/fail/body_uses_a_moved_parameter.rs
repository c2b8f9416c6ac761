use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "product:<name>")]
async fn rename(name: String) -> Result<String, Error> {
    drop(name);
    Ok(name)
}

fn main() {}
