//! `crate = path`: the runtime under another name.

use lockattr::Error;

/// A crate that hands `lockattr` on.
pub mod framework {
    pub use lockattr;
}

/// Locks through the framework.
#[lockattr::distributed_lock(key = "a", lease = lease, on_lost = ignore, crate = self::framework::lockattr)]
pub async fn through_a_framework() -> Result<u64, Error> {
    Ok(lease.fencing_token().into())
}
