//! What killed or stopped processes cost other processes: one TTL at most, however many waiters
//! they had, in every mode.

use futures_util::future::join_all;
use lockattr_tests::in_time;

use super::*;

/// A reader holds the lock, and a writer that waits for it is killed. The next reader is kept out
/// only as long as the writer's entry lasts, not as long as there are readers.
pub(super) async fn a_killed_writer_keeps_readers_out_for_a_ttl_at_most<T: Topology>(
    case: Case<'_, T>,
) {
    let (first, next) = (case.manager().await, case.manager().await);
    let reader = first.acquire(case.key, shared()).await.unwrap();
    waiters(&case, case.key, &format!("crowd 1 exclusive {}", case.key)).await.kill();
    let guard = in_time(next.acquire(case.key, shared())).await.expect("only readers hold it");
    reader.ensure_held().unwrap();
    guard.release().await.unwrap();
    reader.release().await.unwrap();
    case.nothing_left().await;
}

/// A killed process waited for `a` and `b`. `b` is held and `a` is free. In a cluster: with both
/// keys in one slot, and in two.
pub(super) async fn a_killed_waiter_for_two_keys_keeps_the_free_one_for_a_ttl_at_most<
    T: Topology,
>(
    case: Case<'_, T>,
) {
    join_all(["one_slot", "two_slots"].map(async |slots| {
        let both = format!("{}_{slots}", case.key);
        let [a, b] = match slots {
            "one_slot" => ["a", "b"].map(|name| format!("{{{both}}}_{name}")),
            _ => ["a", "b"].map(|name| format!("{both}_{name}")),
        };
        let (first, next) = (case.manager().await, case.manager().await);
        let holder = first.acquire(&b, LockOptions::new()).await.unwrap();
        waiters(&case, &both, &format!("crowd 1 exclusive {a} {b}")).await.kill();
        // In its first second a claim for several keys may be overtaken.
        sleep(Duration::from_millis(1_200)).await;
        let guard = in_time(next.acquire(&a, LockOptions::new())).await.expect("`a` is free");
        guard.release().await.unwrap();
        holder.ensure_held().unwrap();
        holder.release().await.unwrap();
    }))
    .await;
    case.nothing_left().await;
}

/// Twenty waiters of a stopped process cost the time of one grant.
pub(super) async fn a_stopped_process_costs_one_ttl_however_many_waiters_it_has<T: Topology>(
    case: Case<'_, T>,
) {
    join_all(["exclusive", "permits=1", "shared", "several"].map(async |mode| {
        let key = format!("{}_{}", case.key, mode.replace('=', "_"));
        let order = match mode {
            "several" => format!("crowd 20 exclusive {key} {key}_too"),
            mode => format!("crowd 20 {mode} {key}"),
        };
        let (first, next) = (case.manager().await, case.manager().await);
        let holder = first.acquire(&key, LockOptions::new()).await.unwrap();
        let mut stopped = waiters(&case, &key, &order).await;
        stopped.stop_signal();
        // Permits can only be shared with permits.
        let options = match mode {
            "permits=1" => LockOptions::new().permits(1),
            _ => LockOptions::new(),
        };
        let waiter = spawn_waiter(&case, &next, &key, options).await;
        holder.release().await.unwrap();
        let guard = in_time(waiter).await.unwrap();
        let guard = guard.unwrap_or_else(|error| panic!("{mode}: {error}"));
        guard.release().await.unwrap();
        // A process that continues joins the queue again, and acquires the lock.
        stopped.continue_signal();
        assert!(stopped.finish().await.success());
    }))
    .await;
    case.nothing_left().await;
}
