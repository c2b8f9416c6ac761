//! A request that is under way although its caller may be gone.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::entries::Zookeeper;
use super::session::Session;
use crate::engines::sequenced::Permit;
use crate::store::StoreError;

/// Keeps the permit of a request until the servers have replied to it.
pub(super) struct UnderWay<'a> {
    engine: &'a Zookeeper,
    runtime: Handle,
    session: Arc<Session>,
    permit: Option<Permit>,
}

impl<'a> UnderWay<'a> {
    pub(super) fn new(
        engine: &'a Zookeeper,
        session: &Arc<Session>,
        permit: Permit,
    ) -> Result<Self, StoreError> {
        let runtime = engine.sessions.thread.handle()?;
        Ok(Self { engine, runtime, session: session.clone(), permit: Some(permit) })
    }

    /// The request is sent in this session instead.
    pub(super) fn moves_to(&mut self, session: &Arc<Session>) {
        self.session = session.clone();
    }

    /// The servers have replied.
    pub(super) fn ended(&mut self) {
        self.permit = None;
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let Some(permit) = self.permit.take() else { return };
        let client = self.session.client.clone();
        let path = self.engine.sessions.config.chroot.clone();
        self.runtime.spawn(async move {
            // A connection's replies come in order. So this one, whatever it is, comes after that to
            // the request.
            let _reply = client.check_stat(&path).await;
            drop(permit);
        });
    }
}
