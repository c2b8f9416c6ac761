//! `on_busy = return(…)`: a value of the caller's own, over the parameters.

use lockattr::Error;

/// Refreshes a price, or keeps the old one.
#[lockattr::distributed_lock(key = "price:<id>", on_busy = return(Ok(old)))]
pub async fn refresh(id: u64, old: String) -> Result<String, Box<dyn std::error::Error>> {
    if old.is_empty() {
        return Err(Box::new(Error::NoManager));
    }
    Ok(id.to_string())
}
