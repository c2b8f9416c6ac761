//! Parses the messages that servers send to the subscribers of a store, in the format that all servers use:
//!
//! ```text
//! granted TOKEN NUMBER MICROS WANTED [LESS]   the claim holds the lock since then, by the server's clock;
//!                                             its lease is LESS milliseconds shorter than its TTL
//! later TOKEN MILLIS                          the claim asks again after this time
//! wanted NAME                                 other claims wait for this lock
//! ```

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Grant, MAX_RECHECK, OwnerToken, Subscriber, Subscribers};
use crate::FencingToken;
use crate::platform::sync::{Mutex, MutexGuard};

/// The subscribers, and what is known of the clock of the server that notifies them.
#[derive(Debug, Default)]
pub(crate) struct Notifications {
    pub(crate) subscribers: Arc<Subscribers>,
    clock: Mutex<Option<ServerClock>>,
    /// Whether a grant counts only once it is asked for again, in a way that counts.
    to_be_confirmed: bool,
}

/// What the server's clock showed at a moment that was not before `sent_at`.
///
/// The lease of a grant begins when the server grants it, and that is not known here: the message
/// may have come late. But the server says in it what its clock shows, as it did in the answer that
/// told the claim to wait; so much later than that question the lease began.
#[derive(Clone, Copy, Debug)]
struct ServerClock {
    sent_at: Instant,
    micros: u64,
}

impl ServerClock {
    /// An instant that is certainly not after the one in which the server's clock showed `micros`,
    /// as long as it runs within 1 % of ours, which is what every lease allows for.
    fn no_later_than(self, micros: u64) -> Instant {
        match micros.checked_sub(self.micros) {
            Some(after) => self.sent_at + Duration::from_micros(after - after / 100),
            None => {
                let before =
                    Duration::from_micros((self.micros - micros).saturating_mul(101) / 100);
                self.sent_at.checked_sub(before).unwrap_or(self.sent_at)
            }
        }
    }
}

impl Notifications {
    pub(crate) fn new(subscribers: Arc<Subscribers>, to_be_confirmed: bool) -> Self {
        Self { subscribers, clock: Mutex::default(), to_be_confirmed }
    }

    /// Takes note of what the server's clock showed in the answer to a question sent at `sent_at`.
    pub(crate) fn saw_clock(&self, sent_at: Instant, micros: u64) {
        *self.clock() = Some(ServerClock { sent_at, micros });
    }

    /// The next connection may be to another server, with another clock.
    pub(crate) fn forget_clock(&self) {
        *self.clock() = None;
    }

    /// The connection on which the messages came is gone, and messages with it.
    pub(crate) fn interrupted(&self) {
        self.forget_clock();
        self.subscribers.all().iter().for_each(|subscriber| subscriber.ask_all_again());
    }

    /// Delivers a message to the subscriber with this number.
    pub(crate) fn deliver(&self, id: u64, message: &str) {
        // One whose manager is gone may still be listened for.
        let Some(subscriber) = self.subscribers.get(id) else { return };
        if self.read(&subscriber, message).is_none() {
            tracing::warn!(lockattr.subscriber = id, "ignored an invalid message");
        }
    }

    fn read(&self, subscriber: &Subscriber, message: &str) -> Option<()> {
        let (kind, rest) = message.split_once(' ')?;
        if kind == "wanted" {
            subscriber.contended(rest);
            return Some(());
        }
        let mut words = rest.split(' ');
        let token = OwnerToken::parse(words.next()?)?;
        let value = words.next()?.parse().ok()?;
        match kind {
            "granted" => {
                let fencing = FencingToken::read(value)?;
                let granted_at = words.next()?.parse().ok()?;
                let contended = words.next()? != "0";
                let shortened_by = words.next().map_or(Ok(0), str::parse).ok()?;
                let clock = *self.clock();
                match clock {
                    Some(clock) if !self.to_be_confirmed => {
                        let since = clock.no_later_than(granted_at).min(Instant::now());
                        // Its length is not read off the clock, which may have been set meanwhile.
                        match since.checked_sub(Duration::from_millis(shortened_by)) {
                            Some(since) => {
                                subscriber.granted(token, Grant::new(fencing, since, contended));
                            }
                            None => subscriber.ask_again(token, Instant::now()),
                        }
                    }
                    // It overtook the answer that told to wait, or is to be confirmed.
                    _ => subscriber.ask_again(token, Instant::now()),
                }
            }
            "later" => {
                let after = Duration::from_millis(value).min(MAX_RECHECK);
                subscriber.ask_again(token, Instant::now() + after);
            }
            _ => return None,
        }
        Some(())
    }

    fn clock(&self) -> MutexGuard<'_, Option<ServerClock>> {
        self.clock.lock()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::store::{Claim, LockKey, Notification, Sharing};

    fn deliver(message: impl Fn(&str) -> String) -> Option<Notification> {
        let (notifications, subscriber) =
            (Notifications::default(), Arc::new(Subscriber::new(|_name| {})));
        notifications.subscribers.add(&subscriber);
        notifications.saw_clock(Instant::now(), 5_000_000);
        let key = LockKey::new("lock:", "a").unwrap();
        let token = Claim::of(&subscriber, key, [], Sharing::Exclusive, "").token();
        let subscription = subscriber.subscribe(token);
        notifications.deliver(subscriber.id(), &message(&token.to_string()));
        subscription.next().now_or_never()
    }

    /// Red without: the net in `later`, or `FencingToken::read`.
    #[tokio::test]
    async fn only_a_whole_grant_is_one_and_no_process_sleeps_beyond_the_net() {
        let granted = deliver(|token| format!("granted {token} 5 5000000 0"));
        assert!(matches!(granted, Some(Notification::Granted(_))), "{granted:?}");
        let wrong =
            ["", " 5", " 5 5", " 0 5 0", " -5 5 0", " 18446744073709551615 5 0", " 5 5 0 -1"];
        for rest in wrong {
            let notification = deliver(|token| format!("granted {token}{rest}"));
            assert_eq!(notification, None, "{rest}");
        }
        let Some(Notification::AskAgain(at)) =
            deliver(|token| format!("later {token} {}", u64::MAX))
        else {
            panic!("no notification arrived");
        };
        assert!(at <= Instant::now() + MAX_RECHECK);
    }
    /// The server's clock was set ahead between the claim's last question and its grant.
    ///
    /// Red without: the subtraction of `shortened_by`, or with a begin that the server has computed instead.
    #[tokio::test]
    async fn a_grant_that_is_shorter_is_no_longer_than_it_says_whatever_the_clock_shows() {
        for granted_at in [5_000_000, 32_000_000, 4_000_000] {
            let notification = deliver(|token| format!("granted {token} 5 {granted_at} 0 20"));
            let Some(Notification::Granted(grant)) = notification else {
                panic!("{notification:?}")
            };
            let since = Instant::now() - Duration::from_millis(20);
            assert!(grant.since <= since, "{granted_at}: {:?} too late", grant.since - since);
        }
    }
}
