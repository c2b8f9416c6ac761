use lockattr::distributed_lock;

struct NotBoxFuture;

#[distributed_lock(key = "stock")]
fn count() -> NotBoxFuture {
    NotBoxFuture
}

fn main() {}
