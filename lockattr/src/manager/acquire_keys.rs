//! Acquires the keys of a call: re-enters a hold of its own call chain (`reenter.rs`), acquires a
//! new lock (`acquire.rs`), or both for several keys.

use std::sync::Arc;

use tokio::task::coop::consume_budget;
use tokio::time::Instant;

use super::LockManager;
use super::body::{BodyState, Granted, Start};
use crate::hold::chain;
use crate::lock::key::LockKey;
use crate::lock::options::ResolvedOptions;
use crate::{Error, LockGuard};

impl LockManager {
    /// Begins to acquire the lock for a body.
    pub(crate) fn begin(&self, options: ResolvedOptions, key: &str) -> BodyState {
        self.begin_or_refuse(options, key).unwrap_or_else(BodyState::from)
    }

    fn begin_or_refuse(&self, options: ResolvedOptions, key: &str) -> Result<BodyState, Error> {
        if let Some(nested) = self.enter_at_once_blocking(&options, key)? {
            return Ok(Start::Nested(nested, options.on_lost).into());
        }
        Ok(BodyState::acquiring(self.clone().start(options, self.key(key)?)))
    }

    /// Acquires the lock for a body, as a call that begins now.
    pub(crate) async fn start(
        self,
        options: ResolvedOptions,
        key: LockKey,
    ) -> Result<Start, Error> {
        let began = Instant::now();
        let guard = self.acquire_on(&options, key).await?;
        Ok(Granted::new(guard, options, self, began).into())
    }

    pub(crate) async fn acquire_on(
        &self,
        options: &ResolvedOptions,
        key: LockKey,
    ) -> Result<LockGuard, Error> {
        // A call that sends no request is ready at once; a loop of such calls must let other tasks
        // run.
        consume_budget().await;
        if let Some(outer) = chain::find(&self.shared.core, key.as_str()) {
            return self.enter_again(options, &outer, key.as_str()).await;
        }
        self.acquire_new(options, Arc::new([key])).await
    }

    /// Acquires all of `keys` or none: those that this call chain already holds are re-entered.
    pub(crate) async fn acquire_all_on(
        &self,
        options: &ResolvedOptions,
        keys: Vec<LockKey>,
    ) -> Result<LockGuard, Error> {
        // One wait budget for the whole call.
        let began = Instant::now();
        let in_all = |error: Error| error.waited_since(began);
        let (entries, rest) = self.in_chain(keys);
        let mut reentered = Vec::new();
        for (outer, key) in &entries {
            let options = options.after_waiting(began.elapsed());
            reentered.push(self.enter_again(&options, outer, key.as_str()).await.map_err(in_all)?);
        }
        if !rest.is_empty() {
            let options = options.after_waiting(began.elapsed());
            let guard = self.acquire_new(&options, rest.into()).await.map_err(in_all)?;
            // The re-entered holds may have been lost during the wait.
            reentered.iter().try_for_each(|reentry| reentry.ensure_held())?;
            return Ok(guard.with_reentered(reentered));
        }
        match reentered.pop() {
            Some(innermost) => Ok(innermost.with_reentered(reentered)),
            None => Err(Error::InvalidKey("no key is given: name what to lock".into())),
        }
    }
}
