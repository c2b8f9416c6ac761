use lockattr::{Error, distributed_lock};

// The mistakes of one attribute come at once, and its callers add none.
#[distributed_lock(
    key = "product:<prodcut>",
    ttl = 10,
    retry = "3",
    wait = "3 moments",
    retry_dealy = "10ms",
    renew = true,
    renew = false,
    on_busy = wait,
    on_lost = ignore,
    lease = "lease",
)]
async fn restock(product: u64, quantity: u32) -> Result<u32, Error> {
    println!("{product} restocked");
    Ok(quantity)
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let restocked: u32 = restock(42, 3).await?;
    println!("{restocked}");
    Ok(())
}
