//! The task that reads and writes for a connection.

use std::future::poll_fn;

use tokio::task::AbortHandle;
use tokio_postgres::tls::NoTlsStream;
use tokio_postgres::{AsyncMessage, Connection, Notification, Socket};

/// Ends the task of a connection that was not made ready.
pub(super) struct Driver(AbortHandle);

impl Driver {
    pub(super) fn start(driving: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(driving).abort_handle())
    }

    /// The connection is ready: its task goes on.
    pub(super) fn keep(self) -> AbortHandle {
        let handle = self.0.clone();
        std::mem::forget(self);
        handle
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reads and writes until the connection ends: after the last answer when no process has its client any
/// more, or at once when it is broken.
pub(super) async fn drive(
    mut connection: Connection<Socket, NoTlsStream>,
    heard: impl Fn(&Notification) + Send,
) {
    while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
        if let AsyncMessage::Notification(notification) = message {
            heard(&notification);
        }
    }
}
