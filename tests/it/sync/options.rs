//! Every option has the same effect on a plain function as on an `async fn`.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use lockattr::{Error, LockManager, LockOptions, distributed_lock};

use super::manager;
use crate::support::{Fate, Scripted};

#[distributed_lock(key = "job", on_busy = skip, wait = "0s")]
fn skips() -> Option<u32> {
    Some(7)
}

#[distributed_lock(key = "job", on_busy = skip, wait = "0s")]
fn skips_silently() {}

#[distributed_lock(key = "job", on_busy = return(Ok(note)), wait = "0s")]
fn says_instead(note: String) -> Result<String, Error> {
    Ok(format!("{note} under the lock"))
}

#[test]
fn a_call_of_a_busy_lock_is_skipped_or_returns_its_other_value() {
    let manager = manager();
    manager.scope_blocking(|| {
        assert_eq!(skips(), Some(7));
        assert_eq!(says_instead("it ran".into()).unwrap(), "it ran under the lock");
        let held = manager.acquire_blocking("job", LockOptions::new()).unwrap();
        assert_eq!(skips(), None);
        skips_silently();
        assert_eq!(says_instead("busy".into()).unwrap(), "busy");
        drop(held);
    });
}

#[distributed_lock(key = "job", when = really)]
fn perhaps(really: bool) -> Result<bool, Error> {
    Ok(lockattr::current().is_some())
}

#[distributed_lock(keys = ["account:<from>", "account:<to>"], lease = lease)]
fn transfer(from: u64, to: u64) -> Result<Vec<String>, Error> {
    Ok(lease.keys().map(str::to_owned).collect())
}

#[distributed_lock(key = "catalogue", mode = shared, wait = "0s")]
fn browse(deeper: &dyn Fn()) -> Result<(), Error> {
    deeper();
    Ok(())
}

#[distributed_lock(key = "partner", permits = 2, wait = "0s")]
fn ask_partner(deeper: &dyn Fn()) -> Result<(), Error> {
    deeper();
    Ok(())
}

#[distributed_lock(key = "job", reentrant = false)]
fn not_twice() -> Result<(), Error> {
    not_twice()
}

#[test]
fn conditions_keys_modes_permits_and_reentrancy_are_as_written() {
    let manager = manager();
    let elsewhere = |call: &(dyn Fn() + Sync)| {
        std::thread::scope(|scope| {
            scope.spawn(|| manager.scope_blocking(call)).join().unwrap();
        });
    };
    manager.scope_blocking(|| {
        assert!(!perhaps(false).unwrap());
        assert!(perhaps(true).unwrap());
        assert_eq!(transfer(7, 3).unwrap(), ["account:3", "account:7"]);
        // Two readers at once, and two of two permits. A third caller gets none.
        browse(&|| elsewhere(&|| browse(&|| {}).unwrap())).unwrap();
        ask_partner(&|| {
            elsewhere(&|| {
                let third = || elsewhere(&|| assert!(ask_partner(&|| {}).is_err()));
                ask_partner(&third).unwrap();
            });
        })
        .unwrap();
        assert!(matches!(not_twice(), Err(Error::Reentered { .. })));
    });
}

struct Desk<T> {
    locks: LockManager,
    region: T,
    closed: u32,
}

impl<T: Display> Desk<T> {
    #[distributed_lock(key = "desk:<self.region>", manager = &self.locks, lease = lease)]
    fn close(&mut self, ticket: impl Display) -> Result<(&mut u32, String), Error> {
        self.closed += 1;
        let closed = format!("{}/{ticket}", lease.key());
        Ok((&mut self.closed, closed))
    }

    #[distributed_lock(key = "desk", manager = &self.locks)]
    fn into_region(self: Arc<Self>) -> Result<String, Error> {
        Ok(self.region.to_string())
    }
}

#[test]
fn methods_may_be_generic_and_return_what_they_borrow() {
    let mut desk = Desk { locks: manager(), region: "eu", closed: 0 };
    let (closed, ticket) = desk.close(17).unwrap();
    *closed += 1;
    assert_eq!(ticket, "desk:eu/17");
    assert_eq!(desk.closed, 2);
    assert_eq!(Arc::new(desk).into_region().unwrap(), "eu");
}

trait Ledger {
    fn locks(&self) -> &LockManager;

    #[distributed_lock(key = "ledger", manager = self.locks())]
    fn book(&self) -> Result<u32, Error> {
        Ok(lockattr::current().map_or(0, |lease| lease.depth()))
    }
}

impl Ledger for LockManager {
    fn locks(&self) -> &LockManager {
        self
    }
}

#[test]
fn a_default_method_of_a_trait_is_locked() {
    assert_eq!(manager().book().unwrap(), 1);
}

#[distributed_lock(key = "job", release = background, ttl = "600s")]
fn released_in_background() -> Result<(), Error> {
    Ok(())
}

/// Red without: sending the release before the call returns.
#[test]
fn a_release_in_the_background_is_sent_when_the_call_returns_and_is_not_waited_for() {
    let store = Scripted::new();
    store.releases(&[Fate::Late(Duration::from_secs(600))]);
    let manager = store.manager();
    manager.scope_blocking(released_in_background).unwrap();
    assert_eq!(store.calls().releases, [1]);
    assert!(manager.holder_blocking("job").unwrap().is_none());
}

#[distributed_lock(key = "job", on_unavailable = run_unlocked, wait = "10ms")]
fn runs_anyway() -> Result<bool, Error> {
    Ok(lockattr::current().is_some())
}

#[distributed_lock(key = "job", wait = "10ms")]
fn runs_never() -> Result<(), Error> {
    panic!("it ran without its lock")
}

#[test]
fn an_unavailable_store_runs_the_body_only_with_run_unlocked() {
    let store = Scripted::new();
    store.acquires(&[Fate::Refused]);
    let manager = store.manager();
    manager.scope_blocking(|| {
        assert!(!runs_anyway().unwrap());
        assert!(matches!(runs_never(), Err(Error::Store { .. })));
    });
}

#[distributed_lock(key = "job")]
fn without_a_manager() -> Result<(), Error> {
    Ok(())
}

#[test]
fn a_plain_function_without_a_manager_is_refused() {
    assert!(matches!(without_a_manager(), Err(Error::NoManager)));
}
