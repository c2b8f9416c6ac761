//! A plain function.

use lockattr::Error;

/// Takes one.
#[lockattr::distributed_lock(key = "product:<id>", on_busy = return(Ok(0)), lease = lease)]
pub fn deduct(id: u64, stock: &mut u32) -> Result<u32, Error> {
    *stock -= 1;
    Ok(*stock)
}
