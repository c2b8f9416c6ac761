//! Who listens to which shard channels of one node, and for which claims.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::slot::tag_of;
use crate::engines::redis::notifications::channel;
use crate::store::{Claim, Subscribers};

/// So many channels of one node are kept, whether or not somebody needs them still.
const MAX_UNNEEDED: usize = 1024;

/// A subscriber in a slot.
type Address = (u64, u16);

/// The shard channels that one node has for us.
#[derive(Default)]
pub(in crate::engines::redis) struct ShardChannels(Mutex<State>);

#[derive(Default)]
struct State {
    channels: HashMap<Address, ShardChannel>,
    /// How many there may be before those that no process needs are looked for.
    most: usize,
    /// Those that we have asked to hear no more.
    leaving: HashSet<String>,
}

/// What is known of one channel.
#[derive(Default)]
struct ShardChannel {
    /// The connections on which its messages come.
    live: Vec<u64>,
    /// Those that wait, or hold and have to hear which process waits.
    claims: Vec<Weak<Claim>>,
}

impl ShardChannels {
    /// The claim has to be told what is said in this slot; whether the connection with the id `live`
    /// hears it already.
    pub(super) fn need(&self, claim: &Arc<Claim>, slot: u16, live: u64) -> bool {
        let mut state = self.state();
        let channel = state.channels.entry((claim.token().subscriber(), slot)).or_default();
        // One that asks again is known already; those that are gone make room before it grows.
        if !channel.claims.iter().any(|known| known.as_ptr() == Arc::as_ptr(claim)) {
            if channel.claims.len() == channel.claims.capacity() {
                channel.claims.retain(is_needed);
            }
            channel.claims.push(Arc::downgrade(claim));
        }
        channel.live.contains(&live)
    }

    /// The connection with the id `live` hears this channel from now on.
    pub(super) fn subscribed(&self, subscriber: u64, slot: u16, live: u64) {
        self.state().channels.entry((subscriber, slot)).or_default().live.push(live);
    }

    /// The channels that no process needs any more, if there are many: they are not heard from now on.
    pub(super) fn take_unneeded(&self) -> Vec<String> {
        let mut state = self.state();
        if state.channels.len() <= state.most.max(MAX_UNNEEDED) {
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
        // Looked for again when there are twice as many, so that it costs little for each.
        state.most = 2 * state.channels.len();
        state.leaving.extend(unneeded.iter().cloned());
        unneeded
    }

    /// A channel is not heard any more; whether we have asked for that.
    pub(in crate::engines::redis) fn was_unneeded(&self, channel: &str) -> bool {
        self.state().leaving.remove(channel)
    }

    /// What was said in this slot, or in all of them, may not have been heard: all who need it ask
    /// again.
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Where a subscriber's messages about the locks of one slot are published: in that slot.
pub(super) fn channel_in(subscriber: u64, slot: u16) -> String {
    format!("{}:{{{}}}", channel(subscriber), tag_of(slot))
}
