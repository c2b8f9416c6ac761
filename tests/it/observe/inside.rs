//! A tracing subscriber may acquire a lock itself, while it handles an event.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use futures_util::FutureExt;
use lockattr::{Lease, LockManager, LockOptions};
use lockattr_tests::HUNG;
use tokio::time::sleep;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::SECOND;
use crate::support::{Fate, Scripted};

/// Acquires a lock of the manager, and installs the manager, at each of our events.
#[derive(Clone, Default)]
struct LockingSubscriber(Arc<Inner>);

#[derive(Default)]
struct Inner {
    manager: Mutex<Option<LockManager>>,
    heard: Mutex<Vec<String>>,
}

impl LockingSubscriber {
    fn heard(&self, part: &str) -> bool {
        self.0.heard.lock().unwrap().iter().any(|event| event.contains(part))
    }
}

impl Subscriber for LockingSubscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("lockattr")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.0.heard.lock().unwrap().push(format!("{event:?}"));
        let manager = self.0.manager.lock().unwrap().clone();
        if let Some(manager) = manager {
            let options = LockOptions::new().wait(Duration::ZERO);
            drop(manager.acquire("inside", options).now_or_never());
            drop(manager.install_as("acquired while an event was handled"));
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Ends holds in every way: by a release without a reply, by loss, kept, handed off, found gone at
/// the release, and abandoned by a shutdown.
async fn each_kind_of_end(store: Arc<Scripted>, manager: LockManager) {
    let hold = || LockOptions::new().ttl(SECOND);
    store.releases(&[Fate::Refused]);
    manager.with_lock("a", hold(), async |_: &Lease| ()).await.unwrap();
    sleep(30 * SECOND).await;
    store.releases(&[Fate::Answered]);

    let first = manager.acquire("b", hold()).await.unwrap();
    let second = manager.acquire("b", hold());
    let (second, ()) = tokio::join!(second, async move {
        sleep(SECOND).await;
        drop(first);
    });
    store.restart();
    second.unwrap().lost().await;
    drop(manager.acquire("c", hold()).await.unwrap());
    drop(manager.try_acquire("d", hold()).await.unwrap());
    let abandoned = manager.acquire("e", hold()).await.unwrap();
    manager.shutdown().await;
    drop(abandoned);
}

/// Runs `work` on a thread of its own with such a subscriber. Returns what the subscriber received.
fn heard_during<F: Future<Output = ()>>(
    work: impl FnOnce(Arc<Scripted>, LockManager) -> F + Send + 'static,
) -> LockingSubscriber {
    let (done, ends) = channel();
    // A thread that hangs cannot be ended, so the test ends without it.
    thread::spawn(move || {
        let heard = LockingSubscriber::default();
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        tracing::subscriber::with_default(heard.clone(), || {
            runtime.block_on(async {
                let store = Scripted::new();
                let manager = LockManager::builder().store(store.clone()).linger(SECOND);
                let manager = manager.build().unwrap();
                *heard.0.manager.lock().unwrap() = Some(manager.clone());
                work(store, manager).await;
            });
        });
        done.send(heard).unwrap();
    });
    ends.recv_timeout(HUNG).expect("it hangs, or it panicked")
}

#[test]
fn a_subscriber_may_acquire_a_lock_while_it_handles_an_event() {
    let heard = heard_during(each_kind_of_end);
    for event in [
        "a release got no answer before the lease expired",
        "the store no longer has this process as its holder",
    ] {
        assert!(heard.heard(event), "the test misses {event:?}");
    }
}
