//! Which connection serves which claim.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

use super::session::Session;
use crate::platform::sync::Mutex;
use crate::store::OwnerToken;

#[derive(Default)]
pub(super) struct Claims(Mutex<HashMap<OwnerToken, Arc<Served>>>);

/// A claim that a connection serves.
pub(super) struct Served {
    pub(super) session: Arc<Session>,
    /// The claim gives up.
    pub(super) gives_up: Notify,
    /// Whether it waits on the server, so that its connection can answer nothing else.
    waits: AtomicBool,
}

impl Served {
    pub(super) fn waits(&self) -> bool {
        self.waits.load(Ordering::Acquire)
    }

    pub(super) fn set_waits(&self, waits: bool) {
        self.waits.store(waits, Ordering::Release);
    }
}

impl Claims {
    pub(super) fn begin(&self, token: OwnerToken, session: &Arc<Session>) -> Arc<Served> {
        let (gives_up, waits) = Default::default();
        let served = Arc::new(Served { session: session.clone(), gives_up, waits });
        self.0.lock().insert(token, served.clone());
        served
    }

    /// The claim's connection, if it still has one.
    pub(super) fn get(&self, token: OwnerToken) -> Option<Arc<Served>> {
        let mut claims = self.0.lock();
        let served = claims.get(&token)?;
        if served.session.is_over() {
            claims.remove(&token);
            return None;
        }
        Some(served.clone())
    }

    /// The claim ends on this connection. It may have another one by now.
    pub(super) fn remove(&self, token: OwnerToken, session: &Arc<Session>) {
        let mut claims = self.0.lock();
        if claims.get(&token).is_some_and(|served| Arc::ptr_eq(&served.session, session)) {
            claims.remove(&token);
        }
    }

    /// All claims give up.
    pub(super) fn all_give_up(&self) {
        self.0.lock().values().for_each(|served| served.gives_up.notify_one());
    }
}
