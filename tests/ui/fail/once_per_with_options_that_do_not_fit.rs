use lockattr::{Error, distributed_lock};

#[distributed_lock(
    key = "invoices",
    once_per = "0s",
    mode = shared,
    release = background,
    on_lost = ignore,
    on_unavailable = run_unlocked
)]
async fn send() -> Result<(), Error> {
    Ok(())
}

#[distributed_lock(keys = ["a", "b"], once_per = "400days", permits = 3)]
async fn send_both() -> Result<(), Error> {
    Ok(())
}

#[distributed_lock(key = "invoices", once_for = "<night>")]
async fn send_for() -> Result<(), Error> {
    Ok(())
}

fn main() {}
