use lockattr::distributed_lock;

#[distributed_lock(key = "stock")]
async fn count() -> Option<u32> {
    Some(17)
}

fn main() {}
