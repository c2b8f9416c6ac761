//! How a leader's campaign waits: without an end, with few requests, and so that a watch in the same process
//! needs none of its own.

use std::collections::HashMap;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::pending_acquire::{PendingAcquire, Refusal};
use crate::Holder;
use crate::lock::century::at_most_a_century;
use crate::lock::key::LockKey;
use crate::platform::sync::Mutex;

/// The pause before a store that did not answer is asked again; half of it is random.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// The shortest pause where the store has no queue.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);

impl PendingAcquire<'_> {
    /// When a campaign asks again: when the leader's lease ends, or soon enough to keep its place in the
    /// queue. That is at most nine times a minute with a TTL of ten seconds.
    pub(super) fn campaign_again_at(
        &self,
        refusal: &Refusal,
        now: Instant,
        random: f64,
    ) -> Instant {
        // Two thirds of the time for which the store keeps the place: other waiters ask twice as often.
        let lifetime = self.shared.core.store().entry_lifetime(self.options.ttl);
        let often = lifetime / 3;
        let pause = match refusal {
            Refusal::Held { holder, queued } => {
                let left = holder.as_ref().and_then(|holder| holder.remaining);
                match queued {
                    // The store says when the leader's lease ends.
                    Some(soon) if *soon < often => *soon,
                    Some(_) => (often * 2).min(left.unwrap_or(Duration::MAX)),
                    None => left.unwrap_or(often).clamp(SHORTEST_PAUSE, often * 2),
                }
            }
            Refusal::Unknown(_) => AFTER_FAILURE.mul_f64(0.5 + random / 2.0),
        };
        now + at_most_a_century(pause)
    }

    /// Tells the watches of this process what the store answered.
    pub(super) fn campaign_learned(&self, refusal: &Refusal, unreachable: &mut bool) {
        let key = self.claim.key();
        match refusal {
            Refusal::Held { holder, .. } => {
                *unreachable = false;
                self.shared.campaigns.learned(key, holder.as_deref());
            }
            Refusal::Unknown(error) if !std::mem::replace(unreachable, true) => {
                tracing::warn!(
                    lockattr.key = key.as_str(), error.message = %error,
                    "the store cannot be reached; the campaign goes on"
                );
            }
            Refusal::Unknown(_) => {}
        }
    }
}

/// What the campaigns of a manager learn about who leads, by the names of the locks that are watched.
#[derive(Debug, Default)]
pub(super) struct Campaigns(Mutex<HashMap<Box<str>, watch::Sender<Seen>>>);

/// What a campaign saw last.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// When; `None` if no campaign has asked.
    pub(super) at: Option<Instant>,
    /// The leader; `None` if no process led.
    leader: Option<Holder>,
}

impl Campaigns {
    /// Receives what campaigns for this key learn: a change of the leader notifies the receiver.
    pub(super) fn watch(&self, key: &LockKey) -> watch::Receiver<Seen> {
        let mut watched = self.0.lock();
        watched.retain(|_, seen| seen.receiver_count() > 0);
        watched.entry(key.name().into()).or_default().subscribe()
    }

    /// Records the answer of the store.
    pub(super) fn learned(&self, key: &LockKey, holder: Option<&Holder>) {
        if let Some(seen) = self.0.lock().get(key.name()) {
            seen.send_if_modified(|seen| {
                let is_same = match (&seen.leader, holder) {
                    (Some(last), Some(holder)) => last.is_same(holder),
                    (last, holder) => last.is_none() && holder.is_none(),
                };
                *seen = Seen { at: Some(Instant::now()), leader: holder.cloned() };
                !is_same
            });
        }
    }
}
