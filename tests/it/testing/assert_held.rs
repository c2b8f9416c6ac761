//! Code that must run under a lock.

use std::panic::{AssertUnwindSafe, catch_unwind};

use lockattr::testing::TestLocks;
use lockattr::{Error, LockOptions, Mode, assert_held, debug_assert_held, distributed_lock, held};

const LINE_OF_ASSERTION: u32 = line!() + 9;

struct Item {
    product: u64,
    shelf: &'static str,
}

impl Item {
    fn write(&self) {
        assert_held!("item:<self.product>/<self.shelf>");
    }
}

#[distributed_lock(key = "item:<id>/<shelf>")]
async fn deduct(id: u64, shelf: &'static str) -> Result<(), Error> {
    deeper(Item { product: id, shelf }).await;
    Ok(())
}

async fn deeper(item: Item) {
    item.write();
}

/// Returns the panic message of `code`.
fn said(code: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(code)).expect_err("it panics");
    panic.downcast_ref::<String>().expect("a sentence").clone()
}

#[tokio::test(start_paused = true)]
async fn inside_the_hold_it_passes_with_the_attributes_own_escaping() {
    TestLocks::new().scope(deduct(42, "a:b/%")).await.unwrap();
}

/// Red without: any part of the message.
#[tokio::test(start_paused = true)]
async fn outside_it_names_the_key_the_place_and_what_is_held_instead() {
    let place = format!("{}:{LINE_OF_ASSERTION}", file!());
    assert_eq!(
        said(|| Item { product: 42, shelf: "a" }.write()),
        format!(
            "`item:42/a` is not held at {place}; this call chain holds no lock. Call it in a \
             function with `#[distributed_lock]` or under `with_lock`, and spawn tasks with \
             `lockattr::inherit`"
        )
    );

    let locks = TestLocks::new();
    let outer = locks.manager().acquire_all(["b", "a"], LockOptions::new()).await.unwrap();
    let code = outer.scope(async {
        let inner = locks.another_process().acquire("item:4", LockOptions::new()).await.unwrap();
        inner.scope(async { said(|| Item { product: 42, shelf: "a" }.write()) }).await
    });
    let said = code.await;
    assert!(
        said.contains(&format!(
            "`item:42/a` is not held at {place}; this call chain holds `item:4`, `a`, `b`. "
        )),
        "{said}"
    );
}

/// Red without: `message`, or evaluating its arguments only when needed.
#[tokio::test(start_paused = true)]
async fn a_message_may_follow_and_is_made_only_if_needed() {
    let mut made = 0;
    let mut left = || {
        made += 1;
        9
    };
    let said = said(|| assert_held!("stock", "{} of {name} are left", left(), name = "pears"));
    assert!(said.contains(": 9 of pears are left; this call chain"), "{said}");

    let guard = TestLocks::new().manager().acquire("stock", LockOptions::new()).await.unwrap();
    guard.scope(async { assert_held!("stock", "{}", left()) }).await;
    assert_eq!(made, 1);
}

/// Red without: `Key::from_expr` for a key that is not a literal.
#[tokio::test(start_paused = true)]
async fn a_key_may_be_any_expression_and_is_then_used_verbatim() {
    let key = format!("a:{}", "b:c");
    let guard = TestLocks::new().manager().acquire(&key, LockOptions::new()).await.unwrap();
    guard
        .scope(async {
            assert_held!(key);
            assert_held!(&key);
            assert_held!(format_args!("a:{}", "b:c"),);
            assert_held!("a:b:c");
            debug_assert_held!("a:b:c", "in debug builds");
        })
        .await;
    assert!(said(|| assert_held!(key)).starts_with("`a:b:c` is not held at"));
    assert!(said(|| debug_assert_held!("a:<1 + 1>")).starts_with("`a:2` is not held at"));
}

#[tokio::test(start_paused = true)]
async fn any_hold_of_any_manager_will_do() {
    let locks = TestLocks::new();
    let reads = LockOptions::new().mode(Mode::Shared);
    let reader = locks.another_process().acquire("report", reads).await.unwrap();
    reader.scope(async { assert_held!("report") }).await;
    let both = locks.manager().acquire_all(["x", "y"], LockOptions::new()).await.unwrap();
    both.scope(async {
        assert_held!("x");
        assert_held!("y");
    })
    .await;
    // A guard alone is in no call chain.
    assert!(held("x").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_task_that_outlived_the_hold_is_not_under_the_lock() {
    let locks = TestLocks::new();
    let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
    let mut spawned = None;
    let body = locks.manager().with_lock("stock", LockOptions::new(), async |_lease| {
        let part = async move {
            assert_held!("stock");
            receiver.await.ok();
            said(|| assert_held!("stock"))
        };
        spawned = Some(tokio::spawn(lockattr::inherit(part)));
        tokio::task::yield_now().await;
    });
    body.await.unwrap();
    sender.send(()).unwrap();
    let said = spawned.unwrap().await.unwrap();
    assert!(
        said.contains(
            "; it is already released, and this task outlived the hold; this call chain holds no"
        ),
        "{said}"
    );
}

/// Red without: `held` finding lost leases: `on_lost = error` lets such a body finish.
#[tokio::test(start_paused = true)]
async fn a_lost_lease_is_no_mistake_of_the_program_and_can_be_checked() {
    let locks = TestLocks::new();
    let guard = locks.manager().acquire("stock", LockOptions::new()).await.unwrap();
    guard
        .scope(async {
            // The loss comes while the code runs: code that begins after the loss is not inside the
            // hold.
            locks.expire("stock");
            assert_held!("stock");
            assert!(held("stock").unwrap().ensure_held().is_err());
        })
        .await;
}
