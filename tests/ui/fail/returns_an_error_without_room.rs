use lockattr::distributed_lock;

struct SoldOut;

#[distributed_lock(key = "stock")]
async fn sell() -> Result<u32, SoldOut> {
    Err(SoldOut)
}

fn main() {}
