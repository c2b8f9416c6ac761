//! The login of an open connection, which is sent again when a provider's answer changes: services
//! close a connection whose token is too old.

use redis::{Cmd, ErrorKind, RedisError};

use crate::platform::sync::Mutex;
use crate::store::Credentials;

/// What a connection has logged in with.
#[derive(Default)]
pub(super) struct Login {
    /// The user whose password a provider gives, if it names no other.
    user: Option<String>,
    /// `None` without a provider.
    credentials: Mutex<Option<Credentials>>,
}

impl Login {
    pub(super) fn new(user: Option<&str>, credentials: Option<Credentials>) -> Self {
        Self { user: user.map(str::to_owned), credentials: Mutex::new(credentials) }
    }

    /// Returns the command that logs in with these credentials; `None` if they are those in use.
    pub(super) fn change(&self, credentials: &Credentials) -> Option<Cmd> {
        if self.credentials.lock().as_ref() == Some(credentials) {
            return None;
        }
        let mut auth = redis::cmd("AUTH");
        if let Some(user) = credentials.user().or(self.user.as_deref()) {
            auth.arg(user);
        }
        auth.arg(credentials.password());
        Some(auth)
    }

    /// Records that the server has accepted these.
    pub(super) fn changed(&self, credentials: Credentials) {
        *self.credentials.lock() = Some(credentials);
    }
}

/// Returns whether the server did not accept a login, or demands one.
pub(super) fn is_refused(error: &RedisError) -> bool {
    error.kind() == ErrorKind::AuthenticationFailed
        || matches!(error.code(), Some("WRONGPASS" | "NOAUTH"))
        // Servers before version 6 have no code for it.
        || error.detail().is_some_and(|detail| detail.contains("invalid password"))
}
