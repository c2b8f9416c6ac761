//! Leaders: campaigns for a lock, runs a body while it is held, and campaigns again.

use std::pin::pin;
use std::time::Duration;

use tokio::time::sleep;

use super::LockManager;
use super::acquire::shut_down;
use super::leader::TermNote;
use crate::hold::chain;
use crate::hold::term::Term;
use crate::lock::key::LockKey;
use crate::lock::options::ResolvedOptions;
use crate::manager::body::{self, lease};
use crate::platform::entropy::random_fraction;
use crate::{Error, Holder, LockOptions};

/// The longest pause between two terms of one process.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl LockManager {
    /// Leads: waits until this process has the lock, runs `body` for as long as the lease lasts, and then
    /// campaigns again, until a body returns or the manager shuts down.
    ///
    /// The body is the term. It is dropped at its next await point when the lease is lost, when it calls
    /// [`Term::resign`], when it has been silent for longer than
    /// [`progress_within`](LockOptions::progress_within), and after [`max_hold`](LockOptions::max_hold), which
    /// is the longest term. A body that returns without having resigned ends the campaign: `lead` releases the
    /// lock and returns its value, also if that is an error. So handle errors in the body, or call `lead`
    /// again. A panic of the body ends the campaign too.
    ///
    /// Tasks that the body spawned are not part of it: keep them in a
    /// [`JoinSet`](tokio::task::JoinSet) inside, so that they end with the term.
    ///
    /// The term's number is its fencing token. A leader that was stopped past its lease does not know yet
    /// that another leads: a resource that compares the numbers refuses what it still sends.
    ///
    /// The body is called once for each term, so its future cannot borrow mutably from it: share state between
    /// terms in an `Arc` or a cell.
    ///
    /// A campaign has no end, so [`wait`](LockOptions::wait) and [`retry`](LockOptions::retry) are refused. A
    /// store that cannot be reached is asked again within a second; the first failure is a warning event.
    /// While another leads, a follower asks nine times a minute with a TTL of 10 s, and six times with 15 s or
    /// more. It is notified when the leader resigns.
    ///
    /// # Errors
    ///
    /// [`Error::ShutDown`] when the manager shuts down. [`Error::Lost`] if the lock turns out to be lost when
    /// a body has returned: its work may overlap that of another leader. [`Error::Deadlock`],
    /// [`Error::InvalidKey`], and [`Error::InvalidOptions`] for options that do not fit a leader.
    ///
    /// # Cancel safety
    ///
    /// If dropped, the body is dropped at its current await point and the lock is released.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lockattr::Error> {
    /// use std::time::Duration;
    /// use lockattr::{LockManager, LockOptions};
    ///
    /// let manager = LockManager::connect("memory://").await?;
    /// let options = LockOptions::new().progress_within(Duration::from_secs(30));
    /// let jobs = ["invoices", "reminders"];
    /// let done = manager.lead("scheduler", options, async |term| {
    ///     for job in jobs {
    ///         println!("{job}, in term {}", term.number());
    ///         term.progress();
    ///     }
    ///     jobs.len()
    /// }).await?;
    /// assert_eq!(done, 2);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn lead<F: Future>(
        &self,
        key: impl AsRef<str>,
        options: LockOptions,
        body: impl FnMut(Term) -> F,
    ) -> Result<F::Output, Error> {
        let options = options.resolve_lead(self.settings())?;
        self.lead_on(&options, key.as_ref(), body).await
    }

    pub(crate) async fn lead_on<F: Future>(
        &self,
        options: &ResolvedOptions,
        key: &str,
        mut body: impl FnMut(Term) -> F,
    ) -> Result<F::Output, Error> {
        let lock = self.key(key)?;
        if chain::find(&self.shared.core, key).is_some() {
            return Err(Error::InvalidOptions(format!(
                "this call chain holds `{key}`, so no other process could ever lead: campaign outside of \
                 that hold"
            )));
        }
        loop {
            let start = match self.begin(options.clone(), key).start().await {
                Ok(start) => start,
                // The lock was granted, and its lease ended before the body could begin.
                Err(Error::Lost { .. }) => {
                    self.pause(options, key).await?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let mut has_returned = false;
            let term = async {
                let outcome = self.run_term(options, &lock, &mut body).await;
                has_returned = outcome.is_some();
                Ok(outcome)
            };
            match body::run(start.into(), term, Err).await {
                Ok(Some(value)) => return Ok(value),
                Err(error) if has_returned || !error.is_lost() => return Err(error),
                // It resigned, or lost its term.
                Ok(None) | Err(_) => self.pause(options, key).await?,
            }
        }
    }

    /// Runs the body until it returns, or resigns.
    async fn run_term<F: Future>(
        &self,
        options: &ResolvedOptions,
        lock: &LockKey,
        body: &mut impl FnMut(Term) -> F,
    ) -> Option<F::Output> {
        let term = Term::new(lease());
        let holder = Holder::from_value(term.value(), None);
        self.shared.campaigns.learned(lock, Some(&holder));
        let mut note = pin!(TermNote::new(self, options, lock, &holder, term.number()).keep());
        let mut resigned = pin!(term.resigned());
        let mut running = pin!(body(term.clone()));
        tokio::select! {
            biased;
            () = resigned.as_mut() => None,
            value = running.as_mut() => (!term.has_resigned()).then_some(value),
            () = note.as_mut() => None,
        }
    }

    /// A random pause between two terms of this process: others that campaign come first.
    async fn pause(&self, options: &ResolvedOptions, key: &str) -> Result<(), Error> {
        let pause = (options.ttl / 10).min(LONGEST_PAUSE).mul_f64(random_fraction());
        tokio::select! {
            biased;
            () = self.shared.core.watchdog.stopped() => Err(shut_down(key)),
            () = sleep(pause) => Ok(()),
        }
    }
}
