//! The login of an open connection. When a provider's answer changes, the connection is replaced:
//! services close one whose token is too old.

use redis::{ErrorKind, RedisError};

use crate::store::Credentials;

/// What a connection has logged in with; `None` without a provider.
#[derive(Default)]
pub(super) struct Login(Option<Credentials>);

impl Login {
    pub(super) fn new(credentials: Option<Credentials>) -> Self {
        Self(credentials)
    }

    pub(super) fn has(&self, credentials: &Credentials) -> bool {
        self.0.as_ref() == Some(credentials)
    }
}

/// Returns whether the server did not accept a login, or demands one.
pub(super) fn is_refused(error: &RedisError) -> bool {
    error.kind() == ErrorKind::AuthenticationFailed
        || matches!(error.code(), Some("WRONGPASS" | "NOAUTH"))
        // Servers before version 6 have no code for it.
        || error.detail().is_some_and(|detail| detail.contains("invalid password"))
}
