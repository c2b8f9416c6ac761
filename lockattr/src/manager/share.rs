//! The winner's result: callers that waited while a body ran get its `Ok` value and do not run it again.

mod function;
mod results;
mod value;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout};

use super::LockManager;
use super::notes::RESULTS;
use crate::lock::key::LockKey;
use crate::lock::options::ResolvedOptions;
use crate::lock::result_word::ResultWord;
use crate::manager::body::{self, Start, lease};
use crate::platform::entropy::random_bits;
use crate::store::{AcquireOutcome, AcquireRequest, Claim, ReleaseRequest, Sharing};
use crate::{Error, Lease, LockOptions};
pub(crate) use function::{Function, of as function_of};
pub(super) use results::Results;
#[cfg(fuzzing)]
pub use value::read_again;

/// The longest value that is shared, as text. It is sent to the store once, and read once by each process.
const MAX_SIZE: usize = 64 * 1024;

/// How long a request about a note may take. Without an answer, the body runs. So this is also how much earlier than
/// a call the body may have ended whose result the call gets.
const RESPONSE_TIME: Duration = Duration::from_secs(1);

/// A call whose lock was granted.
#[derive(Debug)]
pub(crate) enum Shared<T> {
    /// Another caller had the result while this one waited.
    Taken(T),
    /// This caller runs the body, and passes its result on.
    Runs(Start, Box<Flight>),
}

/// One run of a body, for which others wait.
#[derive(Debug)]
pub(crate) struct Flight {
    manager: LockManager,
    key: LockKey,
    options: ResolvedOptions,
    of: String,
}

impl LockManager {
    /// Runs `body` under the lock, and shares its `Ok` value with the callers that were waiting while it ran:
    /// they return that value and do not run the body again. In the whole fleet, a crowd of callers runs it
    /// once (*single-flight*).
    ///
    /// A caller that comes after the body has ended runs it anew. The body may have begun before the call, and
    /// ended up to a second before it if the store was slow to take the value. So a value may miss what the
    /// caller wrote just before: do not share a result that must contain it. An error is not shared: the next
    /// caller runs the body. Neither is the result of a nested call.
    ///
    /// The key has to name everything on which the result depends. A caller that waited gets a value that is
    /// equal in serde's data model: fields that the type skips are the default. A value that is longer than
    /// 64 KiB, or would not be equal, is not shared: each caller runs the body, and a warning event reports it,
    /// once for each function. A value stays in the store, readable, for one TTL.
    ///
    /// Callers share a value if they lock the same key with the same closure: in one place of the source, with
    /// the same generic arguments and, if it is set, in the same [function](LockOptions::function). What a
    /// function pointer or a boxed closure points to, no type tells: the key has to. Processes of different
    /// builds may run the body once each. The attribute's form is
    /// [`share_result`](macro@crate::distributed_lock).
    ///
    /// # Errors
    ///
    /// As [`with_lock`](Self::with_lock), and [`Error::InvalidOptions`] if the store cannot keep a value
    /// (ZooKeeper, etcd, MySQL, Redlock, and `lock=session`), or for a lock that is shared.
    ///
    /// # Cancel safety
    ///
    /// As [`with_lock`](Self::with_lock).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use std::cell::Cell;
    /// use lockattr::{LockManager, LockOptions};
    /// use tokio::time::{Duration, sleep};
    ///
    /// let manager = LockManager::connect("memory://").await?;
    /// let runs = Cell::new(0);
    /// let price = || manager.with_shared_result("price:42", LockOptions::new(), async |_lease| {
    ///     runs.set(runs.get() + 1);
    ///     sleep(Duration::from_millis(50)).await; // asks the supplier
    ///     Ok::<u64, std::io::Error>(1200)
    /// });
    /// let (one, other) = tokio::join!(price(), price());
    /// assert_eq!((one?.unwrap(), other?.unwrap()), (1200, 1200));
    /// assert_eq!(runs.get(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn with_shared_result<T: Serialize + DeserializeOwned, E>(
        &self,
        key: impl AsRef<str>,
        options: LockOptions,
        body: impl AsyncFnOnce(&Lease) -> Result<T, E>,
    ) -> Result<Result<T, E>, Error> {
        let options = options.resolve(self.settings())?;
        match self.start_sharing(options, key.as_ref(), function_of(&body)).await? {
            Shared::Taken(value) => Ok(Ok(value)),
            Shared::Runs(start, flight) => {
                let body = async move { Ok(body(&lease()).await) };
                flight.run(start, body, |it| it.as_ref().ok()?.as_ref().ok(), Err).await
            }
        }
    }

    /// Acquires the lock for a body whose result is shared; or takes the result of another caller.
    pub(crate) async fn start_sharing<T: DeserializeOwned>(
        &self,
        options: ResolvedOptions,
        key: &str,
        of: Function,
    ) -> Result<Shared<T>, Error> {
        self.check_sharing(&options)?;
        let (began, waited) = (Instant::now(), Arc::new(AtomicBool::new(false)));
        let options = ResolvedOptions { waited: Some(waited.clone()), ..options };
        let start = self.begin(options.clone(), key).start().await?;
        let of = of.named::<T>(options.function);
        let flight = Flight { manager: self.clone(), key: self.key(key)?, options, of };
        if waited.load(std::sync::atomic::Ordering::Acquire)
            && let Some(value) = Box::pin(flight.result_since(began)).await
        {
            start.release().await;
            return Ok(Shared::Taken(value));
        }
        Ok(Shared::Runs(start, Box::new(flight)))
    }

    fn check_sharing(&self, options: &ResolvedOptions) -> Result<(), Error> {
        if options.sharing != Sharing::Exclusive {
            let refusal = "`share_result` is for exclusive locks: leave out `mode` and `permits`";
            return Err(Error::InvalidOptions(refusal.into()));
        }
        self.check_store_shares_results()
    }

    pub(super) fn check_store_shares_results(&self) -> Result<(), Error> {
        let store = self.shared.core.store();
        if store.keeps_long_values() {
            return Ok(());
        }
        Err(Error::InvalidOptions(format!(
            "`share_result` needs a store that keeps a value of 64 KiB for some time, and this one ({}) does \
             not: use Redis, PostgreSQL with leases, or the memory store",
            store.kind()
        )))
    }
}

impl Flight {
    /// Runs the body and releases the lock. Before that, `ok` says what of its output is passed on.
    pub(crate) fn run<B: Future, T: Serialize + DeserializeOwned>(
        self,
        start: Start,
        body: B,
        ok: fn(&B::Output) -> Option<&T>,
        refuse: fn(Error) -> B::Output,
    ) -> impl Future<Output = B::Output> {
        // What a nested call returns may be undone by the call around it.
        let has_lock = matches!(start, Start::Granted(_));
        let run = async move {
            let output = body.await;
            // A body that lost its lease may be one of two that run.
            let may_share = has_lock && lease().ensure_held().is_ok();
            let value = ok(&output).filter(|_| may_share).and_then(|value| self.written(value));
            if let Some(value) = value {
                Box::pin(self.pass_on(value)).await;
            }
            output
        };
        body::run(start.into(), run, refuse)
    }

    /// The result of a body that ran while this caller waited, since `began`.
    async fn result_since<T: DeserializeOwned>(&self, began: Instant) -> Option<T> {
        let results = &self.manager.shared.results;
        let text = match results.since(&self.key, &self.of, began) {
            Some(text) => text,
            None => {
                let (result, ended) = self.read_note().await?;
                results.keep(&self.key, result, ended, self.options.ttl);
                results.since(&self.key, &self.of, began)?
            }
        };
        let value = value::read(&text);
        let taken = value.inspect_err(|error| {
            tracing::debug!(lockattr.key = self.key.as_str(), error.message = %error, "a result cannot be read");
        });
        self.count(if taken.is_ok() { "taken" } else { "unreadable" });
        taken.ok()
    }

    /// Reads the last result from the store, and the latest moment before which its body has certainly not
    /// ended.
    async fn read_note(&self) -> Option<(ResultWord, Instant)> {
        let note = self.key.note(RESULTS);
        let asked = Instant::now();
        let read = self.manager.shared.core.store().holder(&note);
        let (result, age) = timeout(RESPONSE_TIME, read).await.ok()?.ok()??.result()?;
        if result.value.len() > MAX_SIZE {
            // No process of ours has written it.
            self.count("unreadable");
            return None;
        }
        // The note was left before this request was answered, and the store counts in milliseconds by a clock
        // of its own.
        let age = age + age / 100 + Duration::from_millis(2);
        let ended = asked.checked_sub(age)?;
        Some((result, ended))
    }

    /// The value as text, unless it cannot be shared.
    fn written<T: Serialize + DeserializeOwned>(&self, value: &T) -> Option<String> {
        let (outcome, reason) = match value::written(value) {
            Ok(text) if text.len() <= MAX_SIZE => return Some(text),
            Ok(text) => ("too_long", format!("it is longer than 64 KiB: {} bytes", text.len())),
            Err(error) => ("unwritable", error.to_string()),
        };
        if function::is_first(&self.of, outcome) {
            tracing::warn!(
                lockattr.key = self.key.as_str(),
                lockattr.function = self.of,
                "the result is not shared, and each caller runs the body: {reason}"
            );
        }
        self.count(outcome);
        None
    }

    /// Passes the result on to the callers that wait, before the lock is released.
    async fn pass_on(&self, value: String) {
        let (shared, lasts, ended) = (&self.manager.shared, self.options.ttl, Instant::now());
        let result = ResultWord { lasts, id: random_bits(), of: self.of.clone(), value };
        let word = result.to_word();
        shared.results.keep(&self.key, result, ended, lasts);
        let note = self.key.note(RESULTS);
        let label = shared.identity.label(None) + &word;
        let keys = Arc::new([note]);
        let claim = Claim::with(shared.subscriber.id(), keys, Sharing::Exclusive, &label);
        let mut left = Note { flight: self, claim: Arc::new(claim), is_kept: false };
        let answer = timeout(RESPONSE_TIME, left.leave()).await;
        // Its age counts from when the store got it. So one that took long is undone, and one of a body that
        // lost its lock meanwhile.
        left.is_kept = matches!(answer, Ok(Some(())))
            && ended.elapsed() <= RESPONSE_TIME
            && lease().ensure_held().is_ok();
        self.count(if left.is_kept { "passed_on" } else { "unknown" });
    }

    fn count(&self, outcome: &'static str) {
        self.manager.shared.core.watchdog.telemetry().shared_result(outcome);
    }
}

/// The note of a result on its way. Dropping it undoes what is not to be kept.
struct Note<'a> {
    flight: &'a Flight,
    claim: Arc<Claim>,
    is_kept: bool,
}

impl Note<'_> {
    /// Leaves it, in place of that of the last result.
    async fn leave(&self) -> Option<()> {
        let store = self.flight.manager.shared.core.store();
        let request = AcquireRequest::new(self.claim.clone(), self.flight.options.ttl);
        for _ in 0..2 {
            match store.acquire(&request).await.ok()? {
                AcquireOutcome::Acquired { .. } => return Some(()),
                // Only the holder of the lock leaves notes: this is the last one.
                AcquireOutcome::Held { holder: Some(last), .. } => {
                    store.force_release(self.claim.key(), &last.id).await.ok()?;
                }
                AcquireOutcome::Held { holder: None, .. } => {}
            }
        }
        None
    }
}

impl Drop for Note<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            let (note, ttl) = (ReleaseRequest::new(self.claim.clone()), self.flight.options.ttl);
            self.flight.manager.shared.core.watchdog.undo(note, ttl);
        }
    }
}
