//! Brings what the server publishes to the inboxes of the managers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::{FromRedisValue, PushInfo, PushKind};
use tokio::time::Instant;

use super::cluster::{Ears, slot_of};
use super::native::Sought;
use crate::FencingToken;
use crate::store::{Grant, Inbox, Inboxes, OwnerToken};

/// The channel of an inbox is this and its number; the scripts find the number in the token. In a
/// cluster a hash tag follows.
const CHANNEL: &str = "lockattr:inbox:";

/// What one server has for the inboxes of a store.
pub(super) struct Post {
    inboxes: Arc<Inboxes>,
    clock: Mutex<Option<ServerClock>>,
    /// Whether a lease counts only once replicas have it: those that a release granted need not.
    replicated: bool,
    /// Locks for which somebody waits, as far as is known here.
    pub(super) sought: Sought,
    /// Of a node in a cluster, on which each slot has channels of its own.
    ears: Option<Ears>,
}

/// What the server's clock showed at a moment that was not before `asked`.
///
/// The lease of a grant begins when the server grants it, and that is not known here: the message
/// may have come late. But the server says in it what its clock shows, as it did in the answer that
/// told the claim to wait; so much later than that question the lease began.
#[derive(Clone, Copy)]
struct ServerClock {
    asked: Instant,
    micros: u64,
}

impl ServerClock {
    /// An instant that is certainly not after the one in which the server's clock showed `micros`,
    /// as long as it runs within 1 % of ours, which is what every lease allows for.
    fn no_later_than(self, micros: u64) -> Instant {
        match micros.checked_sub(self.micros) {
            Some(after) => self.asked + Duration::from_micros(after - after / 100),
            None => {
                let before =
                    Duration::from_micros((self.micros - micros).saturating_mul(101) / 100);
                self.asked.checked_sub(before).unwrap_or(self.asked)
            }
        }
    }
}

impl Post {
    pub(super) fn new(replicated: bool) -> Self {
        Self {
            inboxes: Arc::default(),
            clock: Mutex::default(),
            replicated,
            sought: Sought::default(),
            ears: None,
        }
    }

    /// For a node of a cluster.
    pub(super) fn of_a_node(inboxes: &Arc<Inboxes>, replicated: bool) -> Self {
        let (inboxes, ears) = (inboxes.clone(), Some(Ears::default()));
        Self { inboxes, ears, ..Self::new(replicated) }
    }

    /// Who listens to which shard channels, in a cluster.
    pub(super) fn ears(&self) -> Option<&Ears> {
        self.ears.as_ref()
    }

    /// Serves this inbox too, for as long as its manager keeps it.
    pub(super) fn add(&self, inbox: &Arc<Inbox>) {
        self.inboxes.add(inbox);
    }

    /// The numbers of the inboxes that have a channel as soon as there is a connection.
    pub(super) fn ids(&self) -> Vec<u64> {
        if self.ears.is_some() {
            return Vec::new();
        }
        self.inboxes.all().iter().map(|inbox| inbox.id()).collect()
    }

    /// Takes note of what the server's clock showed in the answer to a question sent at `asked`.
    pub(super) fn saw_clock(&self, asked: Instant, micros: u64) {
        *self.clock() = Some(ServerClock { asked, micros });
    }

    /// The connection on which the messages came is gone, and messages with it.
    pub(super) fn interrupted(&self) {
        // The next one may be to another server, with another clock.
        *self.clock() = None;
        if let Some(ears) = &self.ears {
            return ears.missed(None, &self.inboxes);
        }
        self.inboxes.all().iter().for_each(|inbox| inbox.ask_all_again());
    }

    /// Whether the server has taken a shard channel from us, because its slot has moved.
    pub(super) fn is_taken(&self, push: &PushInfo) -> bool {
        let (PushKind::SUnsubscribe, Some(ears)) = (&push.kind, &self.ears) else { return false };
        let channel = push.data.first().and_then(|name| String::from_redis_value_ref(name).ok());
        let Some(channel) = channel else { return true };
        // Somebody who needs it may have come while we let go of it.
        self.missed_in(slot_of(&channel));
        !ears.left(&channel)
    }

    /// What was said about the locks of this slot may not have come.
    pub(super) fn missed_in(&self, slot: u16) {
        if let Some(ears) = &self.ears {
            ears.missed(Some(slot), &self.inboxes);
        }
    }

    /// Delivers what the server pushed, if that is a message.
    pub(super) fn deliver_push(&self, push: &PushInfo) {
        if matches!(push.kind, PushKind::Message | PushKind::SMessage)
            && let [channel, message] = push.data.as_slice()
            && let Ok(channel) = String::from_redis_value_ref(channel)
            && let Ok(message) = String::from_redis_value_ref(message)
        {
            self.deliver(&channel, &message);
        }
    }

    /// Delivers a message.
    pub(super) fn deliver(&self, channel: &str, message: &str) {
        if self.read(channel, message).is_none() {
            tracing::warn!(channel, "a message that makes no sense was passed over");
        }
    }

    fn read(&self, channel: &str, message: &str) -> Option<()> {
        let id = channel.strip_prefix(CHANNEL)?;
        let id = id.split_once(':').map_or(id, |(id, _tag)| id);
        let id = u64::from_str_radix(id, 16).ok()?;
        // One whose manager is gone may still be subscribed to.
        let Some(inbox) = self.inboxes.get(id) else { return Some(()) };
        let (kind, rest) = message.split_once(' ')?;
        if kind == "wanted" {
            self.sought.note(rest);
            inbox.wanted(rest);
            return Some(());
        }
        let mut words = rest.split(' ');
        let token = OwnerToken::parse(words.next()?)?;
        let number = words.next()?.parse().ok()?;
        match kind {
            "granted" => {
                let granted_at = words.next()?.parse().ok()?;
                let wanted = words.next()? != "0";
                let clock = *self.clock();
                match clock {
                    Some(clock) if !self.replicated => {
                        let since = clock.no_later_than(granted_at).min(Instant::now());
                        let fencing = FencingToken::from_counter(number);
                        inbox.granted(token, Grant::new(fencing, since, wanted));
                    }
                    // It overtook the answer that told to wait, or is to be asked for in a way
                    // that counts.
                    _ => inbox.ask_again(token, Instant::now()),
                }
            }
            "later" => inbox.ask_again(token, Instant::now() + Duration::from_millis(number)),
            _ => return None,
        }
        Some(())
    }

    fn clock(&self) -> MutexGuard<'_, Option<ServerClock>> {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where an inbox's messages are published.
pub(super) fn channel(id: u64) -> String {
    format!("{CHANNEL}{id:016x}")
}
