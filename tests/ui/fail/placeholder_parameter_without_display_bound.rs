use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "product:<id>")]
async fn restock<Id>(id: Id) -> Result<Id, Error> {
    Ok(id)
}

fn main() {}
