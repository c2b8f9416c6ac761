//! What the attribute adds to a function: to its future, to the stack, and to the depth of its type.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use futures_util::Stream;
use lockattr::{Error, LockManager, distributed_lock};

type Boxed<T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

fn manager() -> LockManager {
    LockManager::builder().url("memory://").build().unwrap()
}

/// Runs on a thread of its own, with two mebibytes of stack.
fn on_a_thread<T: Send>(future: impl Future<Output = T> + Send) -> T {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(manager().scope(future))
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(2 << 20);
        thread.spawn_scoped(scope, run).unwrap().join().unwrap()
    })
}

#[distributed_lock(key = "empty")]
async fn empty() -> Result<(), Error> {
    Ok(())
}

#[distributed_lock(key = "once", once_per = "22h", on_busy = skip)]
async fn once() {}

#[distributed_lock(keys = ["a", "b"], on_busy = return(Ok(id)), on_unavailable = run_unlocked)]
async fn several(id: u64) -> Result<u64, Error> {
    Ok(id)
}

#[distributed_lock(key = "future")]
fn future() -> impl Future<Output = Result<(), Error>> {
    async { Ok(()) }
}

#[distributed_lock(key = "stream")]
fn stream() -> impl Stream<Item = Result<(), Error>> {
    futures_util::stream::empty()
}

#[distributed_lock(key = "shared", share_result = true)]
async fn shared() -> Result<(), Error> {
    Ok(())
}

#[distributed_lock(key = "leader", lead = true)]
async fn leader() -> Result<(), Error> {
    Ok(())
}

/// Red without: the acquisition in a box of its own (`BodyState::acquiring`).
#[test]
fn the_attribute_adds_less_than_a_kibibyte_to_a_future() {
    let sizes = [
        ("empty", size_of_val(&empty())),
        ("once", size_of_val(&once())),
        ("several", size_of_val(&several(1))),
        ("future", size_of_val(&future())),
        ("stream", size_of_val(&stream())),
        ("shared", size_of_val(&shared())),
        ("leader", size_of_val(&leader())),
    ];
    for (function, size) in sizes {
        assert!(size <= 1024, "{function} takes {size} bytes; all: {sizes:?}");
    }
}

/// The address of something at the top of the stack.
fn stack_pointer() -> usize {
    let local = 0_u8;
    std::hint::black_box(&raw const local).addr()
}

fn next_key() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed).to_string()
}

/// Functions of which each calls the next, which comes before it in the source: the compiler lays them out
/// in that order. The last returns where its stack is.
macro_rules! nested {
    (($($attribute:tt)*) $outer:ident $inner:ident $($rest:ident)*) => {
        nested!(($($attribute)*) $inner $($rest)*);

        $($attribute)*
        pub(super) async fn $outer() -> Result<usize, Error> {
            $inner().await
        }
    };
    (($($attribute:tt)*) $last:ident) => {
        $($attribute)*
        pub(super) async fn $last() -> Result<usize, Error> {
            Ok(super::stack_pointer())
        }
    };
}

mod bare {
    use lockattr::Error;
    nested!(()
        f40 f39 f38 f37 f36 f35 f34 f33 f32 f31 f30 f29 f28 f27 f26 f25 f24 f23 f22 f21
        f20 f19 f18 f17 f16 f15 f14 f13 f12 f11 f10 f9 f8 f7 f6 f5 f4 f3 f2 f1);
}

mod locked {
    use super::next_key;
    use lockattr::{Error, distributed_lock};
    nested!((#[distributed_lock(key = next_key(), ttl = "10s", retry = 10)])
        f20 f19 f18 f17 f16 f15 f14 f13 f12 f11 f10 f9 f8 f7 f6 f5 f4 f3 f2 f1);
}

/// The stack between a call and its innermost body.
fn stack_of(call: Boxed<usize>) -> usize {
    let (began, ended) = on_a_thread(async { (stack_pointer(), call.await.unwrap()) });
    began - ended
}

/// Red without: the acquisition in a box of its own (`BodyState::acquiring`).
#[test]
fn ten_nested_calls_need_little_stack() {
    // What a call needs for its own acquisition comes to this, and is the same at every depth.
    let most = if cfg!(debug_assertions) { 150 } else { 40 } << 10;
    let taken = stack_of(Box::pin(locked::f10()));
    assert!(taken <= most, "{taken} bytes");
}

/// Does not compile without: the body as a field of its own (`Run::Runs`), which makes the type of a
/// call one layer flatter; and the variant `Releases` before it.
#[test]
fn twenty_nested_calls_are_send_as_forty_without_the_attribute_are() {
    fn are_send<F: Send>(_call: fn() -> F) {}
    are_send(bare::f40);
    are_send(locked::f20);
}

#[distributed_lock(key = "recursive")]
fn recursive(depth: u64) -> Pin<Box<dyn Future<Output = Result<u64, Error>> + Send>> {
    Box::pin(async move {
        match depth {
            0 => Ok(0),
            _ => Ok(recursive(depth - 1).await? + 1),
        }
    })
}

/// Red without: the acquisition in a box of its own (`BodyState::acquiring`).
#[test]
fn a_function_calls_itself_two_hundred_times_on_the_stack_of_a_thread() {
    assert_eq!(on_a_thread(recursive(200)).unwrap(), 200);
}
