//! The queued claims of this process, by lock. They ask again when its transaction commits.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use tokio::time::Instant;

use crate::platform::sync::Mutex;
use crate::store::{Claim, Subscribers};

#[derive(Default)]
pub(super) struct TransactionWaiters(Mutex<Names>);

#[derive(Default)]
struct Names {
    claims: HashMap<String, Vec<Weak<Claim>>>,
    /// At this many names, entries without waiters are removed.
    cleanup_threshold: usize,
}

impl TransactionWaiters {
    pub(super) fn add(&self, claim: &Arc<Claim>) {
        let mut names = self.0.lock();
        for key in claim.keys() {
            let claims = names.claims.entry(key.name().to_owned()).or_default();
            claims.retain(is_waiting);
            if !claims.iter().any(|other| other.as_ptr() == Arc::as_ptr(claim)) {
                claims.push(Arc::downgrade(claim));
            }
        }
        if names.claims.len() > names.cleanup_threshold {
            names.claims.retain(|_, claims| claims.iter().any(is_waiting));
            names.cleanup_threshold = names.claims.len() * 2 + 16;
        }
    }

    /// Notifies the waiters of this lock to ask again now.
    pub(super) fn ask_again(&self, subscribers: &Subscribers, name: &str) {
        let mut names = self.0.lock();
        let Some(claims) = names.claims.get_mut(name) else { return };
        claims.retain(is_waiting);
        let now = Instant::now();
        for claim in claims.iter().filter_map(Weak::upgrade) {
            if let Some(subscriber) = subscribers.get(claim.token().subscriber()) {
                subscriber.ask_again(claim.token(), now);
            }
        }
    }
}

fn is_waiting(claim: &Weak<Claim>) -> bool {
    claim.upgrade().is_some_and(|claim| claim.queued().is_some())
}
