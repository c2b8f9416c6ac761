//! Acquisitions without a reply, and the connections over which they were sent.
//!
//! A release that undoes an acquisition must be executed after it. Over the same connection it is.
//! But the release may come from another runtime, which has a connection of its own: the runtime of
//! the acquisition may no longer be driven by any thread.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::platform::sync::Mutex;
use crate::store::{Claim, OwnerToken};

/// A connection that the runtime drives on which it was made.
pub(in crate::engines) trait OfRuntime: Clone {
    /// Whether that is the runtime of the caller.
    fn is_here(&self) -> bool;
}

pub(in crate::engines) struct Unanswered<C> {
    connections: Mutex<HashMap<OwnerToken, C>>,
    /// How many there are, so that most releases need no lock.
    count: AtomicUsize,
}

impl<C> Default for Unanswered<C> {
    fn default() -> Self {
        Self { connections: Mutex::new(HashMap::new()), count: AtomicUsize::new(0) }
    }
}

/// An acquisition under way. Dropped without a reply, it is remembered, unless it was never sent.
pub(in crate::engines) struct UnderWay<'a, C> {
    unanswered: &'a Unanswered<C>,
    claim: Option<(&'a Claim, C)>,
}

impl<C: OfRuntime> Unanswered<C> {
    /// An acquisition of the claim is sent over `connection`.
    pub(in crate::engines) fn begin<'a>(
        &'a self,
        claim: &'a Claim,
        connection: C,
    ) -> UnderWay<'a, C> {
        UnderWay { unanswered: self, claim: Some((claim, connection)) }
    }

    /// The connection over which an acquisition of the claim was sent, if it has no reply and another
    /// runtime drives that connection.
    pub(in crate::engines) fn elsewhere(&self, token: OwnerToken) -> Option<C> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let connection = self.connections.lock().get(&token).cloned()?;
        if connection.is_here() {
            self.forget(token);
            return None;
        }
        Some(connection)
    }
}

impl<C> Unanswered<C> {
    pub(in crate::engines) fn forget(&self, token: OwnerToken) {
        let mut connections = self.connections.lock();
        connections.remove(&token);
        self.count.store(connections.len(), Ordering::Release);
    }

    fn add(&self, token: OwnerToken, connection: C) {
        let mut connections = self.connections.lock();
        connections.insert(token, connection);
        self.count.store(connections.len(), Ordering::Release);
    }
}

impl<C> UnderWay<'_, C> {
    /// The server has replied, or was not asked.
    pub(in crate::engines) fn answered(mut self) {
        self.claim = None;
    }
}

impl<C> Drop for UnderWay<'_, C> {
    fn drop(&mut self) {
        if let Some((claim, connection)) = self.claim.take()
            && claim.departed_at().is_some()
        {
            self.unanswered.add(claim.token(), connection);
        }
    }
}
