use lockattr::distributed_lock;

#[distributed_lock(key = "product:<id>")]
struct Product {
    id: u64,
}

fn main() {}
