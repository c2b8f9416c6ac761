use lockattr::distributed_lock;

struct Full;

#[distributed_lock(key = "nightly", on_busy = skip)]
async fn nightly() -> Result<Option<u32>, Full> {
    Err(Full)
}

fn main() {}
