use lockattr::distributed_lock;

#[distributed_lock(key = "nightly", on_busy = skip)]
async fn nightly() -> u32 {
    17
}

fn main() {}
