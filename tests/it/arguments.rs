//! When the arguments of an annotated function are evaluated and dropped.

use std::sync::{Arc, Mutex};

use futures_util::stream::{self, BoxStream, StreamExt};
use lockattr::{Error, Lease, LockManager, distributed_lock};

fn manager() -> LockManager {
    LockManager::builder().url("memory://").build().unwrap()
}

#[distributed_lock(key = "<items[0]>", when = !items.is_empty(), manager = manager)]
async fn sold(manager: &LockManager, items: &[u32]) -> Result<usize, Error> {
    Ok(items.len())
}

#[distributed_lock(keys = ["<items[0]>", items[1]], when = items.len() > 1, manager = manager)]
fn sold_plain(manager: &LockManager, items: &[u32]) -> Result<usize, Error> {
    Ok(items.len())
}

#[distributed_lock(key = items[0], when = !items.is_empty(), manager = manager)]
fn sold_stream<'a>(
    manager: &'a LockManager,
    items: &'a [u32],
) -> BoxStream<'a, Result<u32, Error>> {
    Box::pin(stream::iter(items.iter().copied().map(Ok)))
}

#[tokio::test]
async fn a_key_is_not_evaluated_where_when_is_false() {
    let manager = manager();
    assert_eq!(sold(&manager, &[]).await.unwrap(), 0);
    assert_eq!(sold(&manager, &[7]).await.unwrap(), 1);
    assert_eq!(sold_stream(&manager, &[]).count().await, 0);
    assert_eq!(sold_stream(&manager, &[7]).count().await, 1);
    let plain = manager.clone();
    let plain = tokio::task::spawn_blocking(move || {
        (sold_plain(&plain, &[]).unwrap(), sold_plain(&plain, &[7, 8]).unwrap())
    });
    assert_eq!(plain.await.unwrap(), (0, 2));
    assert!(manager.held_locks().await.unwrap().is_empty());
}

/// The names of the dropped arguments, in brackets if dropped after the release.
#[derive(Clone, Default)]
struct Dropped(Arc<Mutex<(Option<Lease>, Vec<String>)>>);

impl Dropped {
    fn arg(&self, name: &'static str) -> Arg {
        Arg { name, dropped: self.clone() }
    }

    /// Sets the lease that all arguments must be dropped under.
    fn under(&self, lease: &Lease) {
        self.0.lock().unwrap().0 = Some(lease.clone());
    }

    fn take(&self) -> String {
        std::mem::take(&mut self.0.lock().unwrap().1).join(" ")
    }
}

/// Stands for an argument such as an open transaction, which must not outlive the lock.
struct Arg {
    name: &'static str,
    dropped: Dropped,
}

impl Drop for Arg {
    fn drop(&mut self) {
        let (lease, names) = &mut *self.dropped.0.lock().unwrap();
        let is_held = lease.as_ref().is_some_and(|lease| lease.ensure_held().is_ok());
        names.push(if is_held { self.name.to_owned() } else { format!("[{}]", self.name) });
    }
}

struct Pair(Arg, Arg);

/// The plain function next to each annotated one. It shows the drop order of Rust.
async fn as_in_rust(dropped: &Dropped, a: Arg, _b: Arg, _: Arg, Pair(d, _): Pair, e: Arg) {
    let _local = dropped.arg("local");
    let _used = (&a, &d);
    drop(e);
}

#[distributed_lock(key = "job", manager = manager, lease = lease)]
async fn awaited(
    manager: &LockManager,
    dropped: &Dropped,
    a: Arg,
    _b: Arg,
    _: Arg,
    Pair(d, _): Pair,
    e: Arg,
) -> Result<(), Error> {
    dropped.under(lease);
    let _local = dropped.arg("local");
    let _used = (&a, &d);
    tokio::task::yield_now().await;
    drop(e);
    Ok(())
}

/// The same, where the attribute names some of the arguments.
#[distributed_lock(key = "<a.name><<<d.name>", manager = manager, lease = lease)]
fn named(
    manager: &LockManager,
    dropped: &Dropped,
    a: Arg,
    _b: Arg,
    _: Arg,
    Pair(d, _): Pair,
    e: Arg,
) -> Result<(), Error> {
    dropped.under(lease);
    let _local = dropped.arg("local");
    drop(e);
    Ok(())
}

struct Job {
    _arg: Arg,
}

impl Job {
    #[distributed_lock(key = "job", manager = manager, lease = lease)]
    async fn run(self, manager: &LockManager, dropped: &Dropped, _a: Arg) -> Result<(), Error> {
        dropped.under(lease);
        Ok(())
    }

    #[distributed_lock(key = "<self._arg.name>", manager = manager, lease = lease)]
    fn run_plain(
        self: Box<Self>,
        manager: &LockManager,
        dropped: &Dropped,
        mut a: Arg,
    ) -> Result<(), Error> {
        a.name = "changed";
        dropped.under(lease);
        Ok(())
    }
}

#[tokio::test]
async fn every_argument_is_dropped_before_the_release_and_in_the_order_of_rust() {
    let (manager, dropped) = (manager(), Dropped::default());
    let arg = |name| dropped.arg(name);
    let pair = || Pair(arg("d"), arg("of d"));
    as_in_rust(&dropped, arg("a"), arg("b"), arg("c"), pair(), arg("e")).await;
    let rusts = dropped.take().replace(['[', ']'], "");
    assert_eq!(rusts, "e local d of d c b a");

    awaited(&manager, &dropped, arg("a"), arg("b"), arg("c"), pair(), arg("e")).await.unwrap();
    assert_eq!(dropped.take(), rusts);
    Job { _arg: arg("self") }.run(&manager, &dropped, arg("a")).await.unwrap();
    assert_eq!(dropped.take(), "a self");

    let (plain, noted) = (manager.clone(), dropped.clone());
    let plain = tokio::task::spawn_blocking(move || {
        let arg = |name| noted.arg(name);
        let pair = Pair(arg("d"), arg("of d"));
        named(&plain, &noted, arg("a"), arg("b"), arg("c"), pair, arg("e")).unwrap();
        let first = noted.take();
        Box::new(Job { _arg: arg("self") }).run_plain(&plain, &noted, arg("a")).unwrap();
        (first, noted.take())
    });
    assert_eq!(plain.await.unwrap(), (rusts, "changed self".to_owned()));
    assert!(manager.held_locks().await.unwrap().is_empty());
}
