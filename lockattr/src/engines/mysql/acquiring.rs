//! Which runtime's connection serves the acquires of a claim that are queued or under way. A release
//! that undoes one of them follows it on that connection, so that it does not overtake it.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::runtime;

use crate::platform::sync::Mutex;
use crate::store::OwnerToken;

/// The claims, each with the runtime and the number of its requests.
#[derive(Default)]
pub(super) struct Acquirings(Mutex<HashMap<OwnerToken, (runtime::Id, usize)>>);

/// One request, until it is dropped.
pub(super) struct Acquiring {
    claims: Arc<Acquirings>,
    pub(super) token: OwnerToken,
}

impl Acquirings {
    pub(super) fn begin(self: &Arc<Self>, token: OwnerToken, runtime: runtime::Id) -> Acquiring {
        let mut claims = self.0.lock();
        let (of, count) = claims.entry(token).or_insert((runtime, 0));
        (*of, *count) = (runtime, *count + 1);
        Acquiring { claims: self.clone(), token }
    }

    /// The runtime whose connection may still acquire locks for this claim.
    pub(super) fn runtime_of(&self, token: OwnerToken) -> Option<runtime::Id> {
        self.0.lock().get(&token).map(|(runtime, _)| *runtime)
    }
}

impl Drop for Acquiring {
    fn drop(&mut self) {
        let mut claims = self.claims.0.lock();
        if let Some((_, count)) = claims.get_mut(&self.token) {
            *count -= 1;
            if *count == 0 {
                claims.remove(&self.token);
            }
        }
    }
}
