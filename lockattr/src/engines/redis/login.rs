//! The login of an open connection. When a provider's answer changes, the connection is replaced:
//! services close one whose token is too old.

use std::collections::HashMap;

use redis::{ErrorKind, RedisError};
use tokio::runtime;

use crate::platform::sync::Mutex;
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

/// What the next connection of each runtime logs in with: the server has accepted it at a heartbeat.
#[derive(Default)]
pub(super) struct Verified(Mutex<HashMap<runtime::Id, Credentials>>);

impl Verified {
    pub(super) fn put(&self, runtime: runtime::Id, credentials: Credentials) {
        self.0.lock().insert(runtime, credentials);
    }

    pub(super) fn get(&self, runtime: runtime::Id) -> Option<Credentials> {
        self.0.lock().get(&runtime).cloned()
    }

    pub(super) fn remove(&self, runtime: runtime::Id) {
        self.0.lock().remove(&runtime);
    }
}

/// Returns whether the server did not accept a login, or demands one.
pub(super) fn is_refused(error: &RedisError) -> bool {
    error.kind() == ErrorKind::AuthenticationFailed
        || matches!(error.code(), Some("WRONGPASS" | "NOAUTH"))
        // Servers before version 6 have no code for it.
        || error.detail().is_some_and(|detail| detail.contains("invalid password"))
}
