//! Detection of deadlocks: calls, in any processes, that wait for each other.
//!
//! A call that waits inside a hold leaves a note in the store for each lock that it holds: what it
//! waits for. The note is itself a lock, held by the waiter, so that every store can keep it and it
//! expires with its process. Then the waiter follows the notes: from the lock that it waits for to
//! what the holder of that lock waits for, and so on. Each waiter leaves its notes before it
//! searches, so the last one to arrive sees the whole cycle.
//!
//! A note may be out of date as soon as it is read. But if two rounds in succession find the same
//! waits, all of them existed at once between the two. That is a deadlock, because no call in a
//! cycle ever leaves it on its own.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::LockManager;
use super::notes::WAITS;
use crate::hold::chain::{self, Frame};
use crate::lock::holder::Waits;
use crate::lock::key::{LockKey, named};
use crate::lock::options::ResolvedOptions;
use crate::platform::entropy::random_bits;
use crate::store::{AcquireRequest, Claim, ReleaseRequest, Sharing};
use crate::{Error, Holder};

/// Most waits end before this, and cost nothing.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The pause after the first round; it doubles each time, up to `MAX_PAUSE`.
const SECOND_PAUSE: Duration = Duration::from_millis(200);
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// How long a note outlives its process.
const TTL: Duration = Duration::from_secs(30);

/// After this many rounds any waiter breaks the deadlock, because the chosen one may not be
/// searching.
const MAX_ROUNDS: u32 = 3;

/// The longest cycle that is searched for.
const MAX_PATH: usize = 64;

/// Completes with the error if there is a deadlock.
pub(super) type Search = Pin<Box<dyn Future<Output = Error> + Send>>;

/// A call that waits for locks while it holds others.
struct Waiter {
    manager: LockManager,
    waits_for: Vec<LockKey>,
    holds: Vec<Held>,
    id: u64,
}

/// A lock that a call holds, and what other waiters see of the call there.
struct Held {
    key: LockKey,
    entry: Arc<Frame>,
    /// Whether the lock is known to be in the store of the manager that searches. A lock of the same name that another
    /// manager holds in another store is none of the path.
    is_here: bool,
    /// `None` if its name would be too long.
    note: Option<Arc<Claim>>,
    /// When the note was left.
    left: Option<Instant>,
}

/// A lock on the path, and its holder, which also waits.
#[derive(Clone)]
struct Step {
    key: String,
    holder: Holder,
    waits: Waits,
}

impl LockManager {
    /// Searches for a deadlock while a call waits for `keys`, if detection is enabled and the call
    /// holds a lock, through this manager or another one.
    pub(super) fn search(&self, options: &ResolvedOptions, keys: &[LockKey]) -> Option<Search> {
        let settings = &self.shared.settings;
        if !settings.detect_deadlocks || options.wait_budget.is_once() {
            return None;
        }
        let mut entries = chain::entries().filter(|entry| blocks_others(entry)).peekable();
        entries.peek()?;
        let id = random_bits();
        let names: Vec<_> = keys.iter().map(|key| key.name().to_owned()).collect();
        let label = self.shared.identity.label(options.function);
        let held = |(key, entry): (LockKey, Arc<Frame>)| {
            let holds_since = since(&entry).since_millis();
            let label = label.clone() + &Waits { id, holds_since, names: names.clone() }.to_word();
            let name = LockKey::new(WAITS, key.name()).ok();
            let claim = |name| {
                Claim::with(
                    self.shared.subscriber.id(),
                    Arc::new([name]),
                    Sharing::Exclusive,
                    &label,
                )
            };
            let note = name.map(claim).map(Arc::new);
            let is_here = Arc::ptr_eq(entry.core(), &self.shared.core);
            Held { key, entry, is_here, note, left: None }
        };
        let keys_of = |entry: Arc<Frame>| {
            let keys = entry.hold().claim().keys().to_vec();
            keys.into_iter().map(move |key| (key, entry.clone()))
        };
        let holds = entries.flat_map(keys_of).map(held).collect();
        let (manager, waits_for) = (self.clone(), keys.to_vec());
        Some(Box::pin(Waiter { manager, waits_for, holds, id }.search()))
    }
}

/// Whether a waiter for the lock of `entry` waits for this call. A task that outlives its hold
/// blocks no waiter.
fn blocks_others(entry: &Frame) -> bool {
    // A waiter for one of several permits is not stuck while another may be released.
    let is_one_of_several = matches!(entry.sharing, Sharing::Permits(_));
    !is_one_of_several && entry.ensure_held(Instant::now()).is_ok()
}

/// The holder that the lock's value names.
fn since(entry: &Frame) -> Holder {
    Holder::from_value(entry.hold().claim().value(), None)
}

/// Whether two labels are of one process.
fn is_same_process(one: &Holder, other: &Holder) -> bool {
    (&one.host, one.process) == (&other.host, other.process)
}

impl Waiter {
    async fn search(mut self) -> Error {
        let mut pause = FIRST_PAUSE;
        for round in 1_u32.. {
            sleep(pause).await;
            pause = if round == 1 { SECOND_PAUSE } else { (pause * 2).min(MAX_PAUSE) };
            self.leave_notes().await;
            let Some(cycle) = self.find_cycle().await else { continue };
            let again = self.find_cycle().await;
            let ids = |cycle: &[Step]| cycle.iter().map(|step| step.waits.id).collect::<Vec<_>>();
            if again.is_none_or(|again| ids(&again) != ids(&cycle)) {
                continue;
            }
            // One call of the cycle is enough, and all agree which.
            if round >= MAX_ROUNDS || ids(&cycle).iter().all(|id| *id < self.id) {
                return self.error(cycle);
            }
        }
        std::future::pending().await
    }

    /// Leaves the notes, or renews them.
    async fn leave_notes(&mut self) {
        let store = self.manager.shared.core.store();
        for held in &mut self.holds {
            // What another manager holds is looked for here: its store has no name by which it could be compared. A
            // note at a lock that is elsewhere would take the place of the note of its holder here.
            if !held.is_here {
                let (ours, found) = (since(&held.entry), store.holder(&held.key).await);
                held.is_here = found.ok().flatten().is_some_and(|found| {
                    found.since == ours.since && is_same_process(&found, &ours)
                });
            }
            let now = Instant::now();
            if let Some(note) = &held.note
                && held.is_here
                && held.left.is_none_or(|left| now > left + TTL / 3)
            {
                // Failures are ignored: without a note, another waiter finds the cycle, or the wait
                // budget ends it.
                held.left = Some(now);
                drop(store.acquire(&AcquireRequest::new(note.clone(), TTL)).await);
            }
        }
    }

    /// The path from a lock that this call waits for to one that it holds.
    async fn find_cycle(&self) -> Option<Vec<Step>> {
        let first = self.waits_for.iter().map(|key| (key.name().to_owned(), Vec::new()));
        let (mut open, mut seen) = (first.collect::<Vec<(String, Vec<Step>)>>(), Vec::new());
        while let Some((name, path)) = open.pop() {
            if seen.contains(&name) || path.len() >= MAX_PATH {
                continue;
            }
            seen.push(name.clone());
            let Some((holder, waits)) = self.note_at(&name).await else { continue };
            let path = [path, vec![Step { key: name, holder, waits: waits.clone() }]].concat();
            if self.held_here(&waits).is_some() {
                return Some(path);
            }
            open.extend(waits.names.into_iter().map(|name| (name, path.clone())));
        }
        None
    }

    /// A lock that this call holds and that `waits` names.
    fn held_here(&self, waits: &Waits) -> Option<&LockKey> {
        let is_meant = |key: &LockKey| waits.names.iter().any(|name| name == key.name());
        let is_held = |held: &&Held| held.is_here && blocks_others(&held.entry);
        let mut held = self.holds.iter().filter(is_held).map(|held| &held.key);
        held.find(|key| is_meant(key))
    }

    /// The note at a lock, if it belongs to the lock's holder and was not left by a dead process.
    async fn note_at(&self, lock: &str) -> Option<(Holder, Waits)> {
        let store = self.manager.shared.core.store();
        let note = LockKey::new(WAITS, lock).ok()?;
        let mut waiter = store.holder(&note).await.ok()??;
        let waits = waiter.waits.take()?;
        let holder = store.holder(&LockKey::named(lock)).await.ok()??;
        let is_its =
            holder.since_millis() == waits.holds_since && is_same_process(&holder, &waiter);
        // The age of the note says nothing about the lock.
        (waiter.since, waiter.remaining) = (None, None);
        waiter.id = holder.id;
        is_its.then_some((waiter, *waits))
    }

    fn error(&self, cycle: Vec<Step>) -> Error {
        let prefix = &self.manager.shared.settings.prefix;
        let shown = |name: &str| name.strip_prefix(prefix.as_str()).unwrap_or(name).to_owned();
        let held = cycle.last().and_then(|last| self.held_here(&last.waits));
        Error::Deadlock {
            key: named(&self.waits_for),
            holds: held.map(|key| key.as_str().to_owned()).unwrap_or_default(),
            circle: cycle.into_iter().map(|step| (shown(&step.key), step.holder)).collect(),
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        for held in &self.holds {
            if let (Some(note), Some(left)) = (&held.note, held.left) {
                let watchdog = &self.manager.shared.core.watchdog;
                watchdog.release_later(ReleaseRequest::new(note.clone()), left + TTL, None);
            }
        }
    }
}
