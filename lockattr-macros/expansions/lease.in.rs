//! `lease = name`: the body sees its lease.

use lockattr::Error;

/// Writes an invoice.
#[lockattr::distributed_lock(key = "invoice:<number>", lease = held)]
pub async fn write(number: u64) -> Result<u64, Error> {
    held.ensure_held()?;
    Ok(number + u64::from(held.fencing_token()))
}
