//! What deadlock detection needs from a store: a manager can leave notes and read them.

use std::sync::Arc;
use std::time::Duration;

use lockattr::store::{AcquireOutcome, AcquireRequest, AnyStore, Claim, LockKey, ReleaseRequest};
use lockattr::{Error, LockManager, LockOptions};
use tokio::sync::Barrier;
use tokio::time::timeout;

use super::{MINUTE, TTL};
use crate::eventually::{HUNG, eventually};
use crate::subject::Subject;

const PATIENT: LockOptions = LockOptions::new().wait(TTL).ttl(MINUTE);

/// Returns a manager that acts as one process of the service `name`.
fn process(store: &Subject, name: &str) -> LockManager {
    let builder = LockManager::builder().store(AnyStore::clone(store));
    let builder = builder.prefix(store.prefix()).service(name);
    builder.detect_deadlocks(true).build().expect("a manager")
}

/// Acquires `inner` inside `outer`, once all processes hold their outer lock.
async fn acquire_nested(
    manager: &LockManager,
    keys: [&str; 2],
    all: &Barrier,
) -> Result<(), Error> {
    acquire_through([manager, manager], keys, all).await
}

/// The same, each through a manager of its own.
async fn acquire_through(
    managers: [&LockManager; 2],
    [outer, inner]: [&str; 2],
    all: &Barrier,
) -> Result<(), Error> {
    let outer = managers[0].acquire(outer, PATIENT).await.expect("free");
    all.wait().await;
    let got = outer.scope(managers[1].acquire(inner, PATIENT)).await;
    let done = match got {
        Ok(guard) => guard.release().await,
        Err(error) => Err(error),
    };
    outer.release().await.expect("held");
    done
}

async fn no_notes_are_left(store: &Subject, keys: &[&str]) {
    for held in keys {
        let note = LockKey::new("lockattr:waits:", store.key(held).name()).expect("a good key");
        let gone = async || store.holder(&note).await.expect("an answer").is_none();
        eventually("its note is gone", gone).await;
    }
}

pub(crate) async fn a_deadlock_of_two_processes_is_broken_and_named(store: Subject) {
    let (here, there) = (process(&store, "here"), process(&store, "there"));
    let all = Arc::new(Barrier::new(2));
    let both = async {
        tokio::join!(
            acquire_nested(&here, ["a", "b"], &all),
            acquire_nested(&there, ["b", "a"], &all)
        )
    };
    let (error, [asked, holds], other) = match timeout(HUNG, both).await.expect("it is broken") {
        (Err(error), Ok(())) => (error, ["b", "a"], "there"),
        (Ok(()), Err(error)) => (error, ["a", "b"], "here"),
        both => panic!("one of them fails, and the other acquires: {both:?}"),
    };
    let said = error.to_string();
    let Error::Deadlock { key, circle, holds: held } = error else { panic!("{error:?}") };
    assert_eq!((key.as_str(), held.as_str()), (asked, holds));
    let [(key, holder)] = &circle[..] else { panic!("{circle:?}") };
    assert_eq!((key.as_str(), holder.service.as_deref()), (asked, Some(other)));
    assert!(said.contains(&format!("`{asked}` is held by {other}")), "{said}");
    no_notes_are_left(&store, &["a", "b"]).await;
}

/// The process that left the note is gone, and another process holds its lock.
pub(crate) async fn a_note_of_a_dead_process_is_ignored(store: Subject) {
    let (here, there) = (process(&store, "here"), process(&store, "there"));
    let works = there.acquire("b", PATIENT).await.expect("free");
    let note = LockKey::new("lockattr:waits:", store.key("b").name()).expect("a good key");
    let waits_for = store.key("a").name().replace('%', "%25").replace(' ', "%20");
    let pid = std::process::id();
    let label = format!("since=1 service=gone pid={pid} waits=17/1/{waits_for}");
    let left = Arc::new(Claim::new(note, &label));
    let request = AcquireRequest::new(left.clone(), TTL);
    assert!(matches!(store.acquire(&request).await, Ok(AcquireOutcome::Acquired { .. })));

    let outer = here.acquire("a", PATIENT).await.expect("free");
    let inner = outer.scope(here.acquire("b", PATIENT));
    // Unless the machine is slow, the waiter has read the note three times by then.
    let early = timeout(Duration::from_secs(2), inner).await;
    assert!(early.is_err(), "its holder works: {:?}", early.map(drop));
    works.release().await.expect("held");
    let inner = outer.scope(here.acquire("b", PATIENT)).await.expect("free");
    inner.release().await.expect("held");
    outer.release().await.expect("held");
    drop(store.release(&[ReleaseRequest::new(left)]).await);
}

/// One call chain locks through two managers of its process, such as its own and that of a library.
pub(crate) async fn a_deadlock_through_two_managers_is_broken(store: Subject) {
    let [here, library, there] = ["here", "library", "there"].map(|name| process(&store, name));
    let all = Arc::new(Barrier::new(2));
    let both = async {
        tokio::join!(
            acquire_through([&here, &library], ["a", "b"], &all),
            acquire_through([&there, &there], ["b", "a"], &all)
        )
    };
    let (one, other) = timeout(HUNG, both).await.expect("it is broken");
    match (one, other) {
        (Err(Error::Deadlock { .. }), Ok(())) | (Ok(()), Err(Error::Deadlock { .. })) => {}
        both => panic!("one of them fails, and the other acquires: {both:?}"),
    }
    no_notes_are_left(&store, &["a", "b"]).await;
}

pub(crate) async fn a_deadlock_of_three_processes_is_broken_by_one(store: Subject) {
    let [one, two, three] = ["one", "two", "three"].map(|name| process(&store, name));
    let all = Arc::new(Barrier::new(3));
    let three = async {
        tokio::join!(
            acquire_nested(&one, ["a", "b"], &all),
            acquire_nested(&two, ["b", "c"], &all),
            acquire_nested(&three, ["c", "a"], &all)
        )
    };
    let (one, two, three) = timeout(HUNG, three).await.expect("it is broken");
    let errors: Vec<_> = [one, two, three].into_iter().filter_map(Result::err).collect();
    let [Error::Deadlock { circle, .. }] = &errors[..] else { panic!("{errors:?}") };
    assert_eq!(circle.len(), 2, "{circle:?}");
    no_notes_are_left(&store, &["a", "b", "c"]).await;
}
