//! The task that reads and writes for a connection.

use std::future::poll_fn;

use tokio::task::AbortHandle;
use tokio_postgres::{AsyncMessage, Notification};

use super::connect::Messages;

/// On drop, ends the task of a connection that did not become ready.
pub(super) struct Driver(AbortHandle);

impl Driver {
    pub(super) fn start(driving: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(driving).abort_handle())
    }

    /// The connection is ready: its task continues.
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

/// Reads and writes until the connection breaks, or its client is dropped and all is answered.
pub(super) async fn drive(
    mut connection: Box<dyn Messages>,
    on_notification: impl Fn(&Notification) + Send,
) {
    while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
        if let AsyncMessage::Notification(notification) = message {
            on_notification(&notification);
        }
    }
}
