//! `once_per` and `once_for`: after a body that ended `Ok`, the key is done.

use lockattr::Error;

/// Runs once in a period.
#[lockattr::distributed_lock(key = "invoices", once_per = "22h", wait = "0s", on_busy = skip)]
pub async fn invoices() -> Result<Option<usize>, Error> {
    Ok(Some(1200))
}

/// Runs once for a night.
#[lockattr::distributed_lock(key = "report", once_for = "<night>")]
pub fn report(night: &str) -> Result<usize, Error> {
    Ok(night.len())
}
