use lockattr::distributed_lock;

#[distributed_lock(key = "stock")]
fn count() -> u32 {
    17
}

fn main() {
    count();
}
