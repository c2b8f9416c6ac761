//! The subscribers that a store notifies, each for as long as its manager keeps it.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use super::Subscriber;
use crate::platform::sync::{Mutex, MutexGuard};

#[derive(Debug, Default)]
pub(crate) struct Subscribers(Mutex<HashMap<u64, Weak<Subscriber>>>);

impl Subscribers {
    /// Adds a subscriber, and removes those whose managers are gone.
    pub(crate) fn add(&self, subscriber: &Arc<Subscriber>) {
        let mut subscribers = self.lock();
        subscribers.retain(|_, subscriber| subscriber.strong_count() > 0);
        subscribers.insert(subscriber.id(), Arc::downgrade(subscriber));
    }

    pub(crate) fn get(&self, id: u64) -> Option<Arc<Subscriber>> {
        self.lock().get(&id).and_then(Weak::upgrade)
    }

    #[cfg(any(feature = "redis", feature = "postgres", feature = "mysql"))]
    pub(crate) fn all(&self) -> Vec<Arc<Subscriber>> {
        self.lock().values().filter_map(Weak::upgrade).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Weak<Subscriber>>> {
        // No panic can leave this half-changed, so a poisoned mutex is safe to use.
        self.0.lock()
    }
}
