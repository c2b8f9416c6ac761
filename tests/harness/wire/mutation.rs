//! What changes the bytes of the servers on their way.

use std::fmt;
use std::sync::{Arc, Mutex};

use crate::network::locked;

type Change = Box<dyn FnMut(&mut Vec<u8>) + Send>;

/// A change of each piece that a server sends; none at first.
#[derive(Clone, Default)]
pub(super) struct Mutation(Arc<Mutex<Option<Change>>>);

impl Mutation {
    pub(super) fn set(&self, change: Option<Change>) {
        *locked(&self.0) = change;
    }

    pub(super) fn apply(&self, bytes: &mut Vec<u8>) {
        if let Some(change) = &mut *locked(&self.0) {
            change(bytes);
        }
    }
}

impl fmt::Debug for Mutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mutation")
    }
}
