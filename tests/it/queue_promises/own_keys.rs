//! Jobs that want locks of their own, so that no other caller holds any of them: a missing answer is no holder.

use futures_util::future::join_all;
use lockattr::Error;
use lockattr_tests::{Wires, in_time};
use tokio::task::JoinSet;

use super::*;

/// In each of three processes.
const JOBS: usize = 200;

/// Slow enough that most jobs get no answer in time, while the store answers others.
const BYTES_PER_SECOND: u32 = 40_000;

/// The answers come later than the jobs wait, over a link that carries 40 KB a second. No job learns that its lock is
/// held; and what was granted to those that gave up is undone.
pub(super) async fn jobs_with_keys_of_their_own_are_never_contended<T: Topology>(
    case: Case<'_, T>,
) {
    let processes = join_all((0..3).map(async |_| {
        let wires = Wires::before(case.engine).await;
        let manager = crate::engine_faults::connected(&wires.url()).await;
        let warm = format!("{}_warm", case.key);
        manager.acquire(warm, LockOptions::new()).await.unwrap().release().await.unwrap();
        wires.carry(BYTES_PER_SECOND);
        (wires, manager)
    }));
    let processes = processes.await;
    for wait in [Duration::from_millis(100), Duration::ZERO] {
        let mut jobs = JoinSet::new();
        for (process, (_, manager)) in processes.iter().enumerate() {
            for job in 0..JOBS {
                let key = format!("{}_{}_{process}_{job}", case.key, wait.as_millis());
                let (manager, options) = (manager.clone(), LockOptions::new().wait(wait));
                jobs.spawn(async move {
                    let guard = manager.acquire(key, options).await?;
                    // A release without an answer is retried in the background.
                    guard.release().await.ok();
                    Ok(())
                });
            }
        }
        let outcomes = in_time(jobs.join_all()).await;
        let of = |is: fn(&Result<(), Error>) -> bool| outcomes.iter().filter(|it| is(it)).count();
        let ran = of(Result::is_ok);
        let contended = of(|it| matches!(it, Err(Error::Contended { .. })));
        let store = of(|it| matches!(it, Err(Error::Store { .. })));
        assert_eq!(
            contended, 0,
            "wait {wait:?}: {ran} ran, {contended} were skipped, {store} had no answer"
        );
        assert_eq!(ran + store, outcomes.len(), "{outcomes:?}");
    }
    for (wires, _) in &processes {
        wires.pass().await;
    }
    case.nothing_left().await;
}
