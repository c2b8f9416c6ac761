//! Checks what a manager needs of its tokio runtime. Tokio has no query for that, and panics
//! instead.

#[cfg(any(feature = "redis", feature = "postgres", feature = "mysql"))]
use std::panic::catch_unwind;

use crate::platform::timers::has_timers;
use crate::store::AnyStore;

/// What to enable on the current runtime, if it lacks what a manager with this store needs.
pub(super) fn check_runtime(store: &AnyStore) -> Result<(), &'static str> {
    if !has_timers() {
        return Err(
            "this tokio runtime has no timers: build it with `enable_time` or `enable_all`",
        );
    }
    if store.needs_io() && !has_io() {
        return Err(
            "this tokio runtime has no I/O, and the store is reached over the network: build \
                    it with `enable_io` or `enable_all`",
        );
    }
    Ok(())
}

/// Whether the runtime can create a socket; also `true` if the system provides none at all.
#[cfg(all(unix, any(feature = "redis", feature = "postgres", feature = "mysql")))]
fn has_io() -> bool {
    catch_unwind(|| drop(tokio::net::UnixDatagram::unbound())).is_ok()
}

#[cfg(all(not(unix), any(feature = "redis", feature = "postgres", feature = "mysql")))]
fn has_io() -> bool {
    let socket = || {
        let socket = std::net::UdpSocket::bind(("127.0.0.1", 0))?;
        socket.set_nonblocking(true)?;
        tokio::net::UdpSocket::from_std(socket)
    };
    catch_unwind(|| drop(socket())).is_ok()
}

#[cfg(not(any(feature = "redis", feature = "postgres", feature = "mysql")))]
fn has_io() -> bool {
    true
}
