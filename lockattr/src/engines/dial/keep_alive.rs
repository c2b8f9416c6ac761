//! How the system finds out that the other end of a connection no longer exists.

use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

/// What is set on a connection. The system counts in whole seconds.
#[derive(Clone, Debug, Default)]
pub(in crate::engines) struct KeepAlive {
    /// The probes on an idle connection.
    pub(in crate::engines) probes: Option<TcpKeepalive>,
    /// How long data may stay without an acknowledgement.
    pub(in crate::engines) user_timeout: Option<Duration>,
}

impl KeepAlive {
    pub(in crate::engines) fn set(&self, stream: &TcpStream) -> io::Result<()> {
        let socket = SockRef::from(stream);
        if let Some(probes) = &self.probes {
            socket.set_tcp_keepalive(probes)?;
        }
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if self.user_timeout.is_some() {
            socket.set_tcp_user_timeout(self.user_timeout)?;
        }
        Ok(())
    }
}
