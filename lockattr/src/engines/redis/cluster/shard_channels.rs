//! The shard channels of one node to which this process subscribes, and the claims that need them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use super::slot::tag_of;
use crate::engines::redis::notifications::channel;
use crate::platform::sync::{Mutex, MutexGuard};
use crate::store::{Claim, Subscribers};

/// The number of channels of one node that are kept even if no claim needs them.
const MAX_UNNEEDED: usize = 1024;

/// A subscriber and a slot.
type Address = (u64, u16);

/// The subscribed shard channels of one node.
#[derive(Default)]
pub(in crate::engines::redis) struct ShardChannels(Mutex<State>);

#[derive(Default)]
struct State {
    channels: HashMap<Address, ShardChannel>,
    /// The number of channels above which unneeded ones are searched.
    cleanup_threshold: usize,
    /// Channels whose subscription this process is ending itself.
    leaving: HashSet<String>,
}

/// The state of one channel.
#[derive(Default)]
struct ShardChannel {
    /// The connections that receive its messages.
    live: Vec<u64>,
    /// Claims that wait, or that hold a lock and must be notified of waiters.
    claims: Vec<Weak<Claim>>,
}

impl ShardChannels {
    /// Records that the claim needs the notifications of this slot. Returns whether the connection
    /// with the id `live` already receives them.
    pub(super) fn add(&self, claim: &Arc<Claim>, slot: u16, live: u64) -> bool {
        let mut state = self.state();
        let channel = state.channels.entry((claim.token().subscriber(), slot)).or_default();
        // A claim that asks again is known already. Dropped claims are removed before the list
        // grows.
        if !channel.claims.iter().any(|known| known.as_ptr() == Arc::as_ptr(claim)) {
            if channel.claims.len() == channel.claims.capacity() {
                channel.claims.retain(is_needed);
            }
            channel.claims.push(Arc::downgrade(claim));
        }
        channel.live.contains(&live)
    }

    /// Records that the connection with the id `live` receives this channel.
    pub(super) fn subscribed(&self, subscriber: u64, slot: u16, live: u64) {
        self.state().channels.entry((subscriber, slot)).or_default().live.push(live);
    }

    /// Removes and returns the channels that no claim needs, if there are many.
    pub(super) fn take_unneeded(&self) -> Vec<String> {
        let mut state = self.state();
        if state.channels.len() <= state.cleanup_threshold.max(MAX_UNNEEDED) {
            return Vec::new();
        }
        let mut unneeded = Vec::new();
        state.channels.retain(|&(subscriber, slot), channel| {
            let needed = channel.is_needed();
            if !needed {
                unneeded.push(channel_in(subscriber, slot));
            }
            needed
        });
        // Search again at twice as many, so that a search costs little for each channel.
        state.cleanup_threshold = 2 * state.channels.len();
        state.leaving.extend(unneeded.iter().cloned());
        unneeded
    }

    /// Records the end of a subscription. Returns whether this process requested it.
    pub(in crate::engines::redis) fn was_unneeded(&self, channel: &str) -> bool {
        self.state().leaving.remove(channel)
    }

    /// Makes all claims of this slot, or of all slots, ask again: notifications may have been lost.
    pub(in crate::engines::redis) fn missed(&self, slot: Option<u16>, subscribers: &Subscribers) {
        let mut missed = Vec::new();
        self.state().channels.retain(|&(subscriber, of), channel| {
            let concerned = slot.is_none_or(|slot| slot == of);
            if concerned {
                missed.extend(
                    channel.claims.iter().filter_map(Weak::upgrade).map(|it| (subscriber, it)),
                );
            }
            !concerned
        });
        for (subscriber, claim) in missed {
            if let Some(subscriber) = subscribers.get(subscriber) {
                subscriber.ask_again(claim.token(), tokio::time::Instant::now());
                claim.keys().iter().for_each(|key| subscriber.contended(key.name()));
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl ShardChannel {
    fn is_needed(&self) -> bool {
        self.claims.iter().any(is_needed)
    }
}

fn is_needed(claim: &Weak<Claim>) -> bool {
    claim.strong_count() > 0
}

/// Returns the channel of a subscriber for the locks of one slot. It is in that slot.
pub(super) fn channel_in(subscriber: u64, slot: u16) -> String {
    format!("{}:{{{}}}", channel(subscriber), tag_of(slot))
}
