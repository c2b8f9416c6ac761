//! What `sim/` needs of the runtime and no user does: to say what a machine says, and to tell a subscriber
//! over a wire of its own.

use std::fmt;
use std::sync::Arc;

use tokio::time::Instant;

use crate::store::{Notifications, Subscriber};

pub use crate::platform::simulated::{Machine, run_on};
pub use crate::store::slots::{Attempt, Slots};

/// The subscribers of a store and the words by which its server tells them: those that the stores use
/// whose servers speak such words.
#[derive(Default)]
pub struct Post(Notifications);

impl Post {
    /// Serves this subscriber too.
    pub fn add(&self, subscriber: &Arc<Subscriber>) {
        self.0.subscribers.add(subscriber);
    }

    /// The subscribers that there are, by their numbers.
    pub fn subscribers(&self) -> Vec<Arc<Subscriber>> {
        let mut subscribers = self.0.subscribers.all();
        subscribers.sort_by_key(|subscriber| subscriber.id());
        subscribers
    }

    /// What the server's clock showed in the answer to a question sent at `asked`.
    pub fn saw_clock(&self, asked: Instant, micros: u64) {
        self.0.saw_clock(asked, micros);
    }

    /// The connection on which the messages came is gone.
    pub fn interrupted(&self) {
        self.0.interrupted();
    }

    /// Delivers a message.
    pub fn deliver(&self, subscriber: u64, message: &str) {
        self.0.deliver(subscriber, message);
    }
}

impl fmt::Debug for Post {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Post")
    }
}
