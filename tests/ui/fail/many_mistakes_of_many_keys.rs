use lockattr::{Error, distributed_lock};

// Each at its own key.
#[distributed_lock(keys = [
    "account:<form>",
    "account:<>",
    format!("day:{day}"),
    "account:{to}",
    "",
])]
async fn transfer(from: u64, to: u64, day: u32) -> Result<u64, Error> {
    Ok(from + to)
}

fn main() {}
