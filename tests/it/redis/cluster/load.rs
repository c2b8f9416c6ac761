//! Masters are killed and stopped under load: only one client writes for a key at a time, and its
//! token is greater than all before.

use std::array;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_util::future::join_all;
use lockattr::Error;
use lockattr_history::{Resources, seed};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;

/// Three keys in the slots of each master; `key % 3` is the number of the master.
const KEYS: usize = 9;

/// Returns once each of these keys has been written again.
async fn written_again(
    resources: &Resources,
    names: &[String; KEYS],
    what: &str,
    keys: impl Fn(usize) -> bool,
) {
    let writes = || names.each_ref().map(|name| resources.writes_of(name));
    let before = writes();
    let again = async || {
        let now = writes();
        (0..KEYS).filter(|&key| keys(key)).all(|key| now[key] > before[key])
    };
    eventually(what, again).await;
}

fn names(cluster: &Cluster) -> [String; KEYS] {
    let mut names = (0..).map(|number| format!("k{number}"));
    array::from_fn(|key| names.find(|name| shard_of(cluster, name) == key % 3).unwrap())
}

/// Acquires one or two keys again and again until the test is over. Counts how often it held them
/// to the end of its work.
async fn works(
    manager: LockManager,
    names: &[String; KEYS],
    (resources, over, done): (&Resources, &AtomicBool, &AtomicUsize),
    seed: u64,
) {
    let mut random = StdRng::seed_from_u64(seed);
    while !over.load(Ordering::Relaxed) {
        let mut keys = vec![random.random_range(0..KEYS)];
        if random.random_range(0..4) == 0 {
            // A key of another master.
            keys.push((keys[0] + [1, 2, 4, 5][random.random_range(0..4)]) % KEYS);
        }
        let wait = Duration::from_millis(random.random_range(1..1_000));
        let claim = keys.iter().map(|&key| &*names[key]);
        let guard = match manager.acquire_all(claim, LockOptions::new().wait(wait)).await {
            Ok(guard) => guard,
            Err(Error::Contended { .. } | Error::Store { .. }) => continue,
            Err(error) => panic!("{error:?}"),
        };
        for _ in 0..4 {
            // There is no await between the check and the writes.
            if guard.ensure_held().is_ok() {
                let token = guard.fencing_token().get();
                keys.iter().for_each(|&key| resources.add(&names[key], token));
            }
            sleep(Duration::from_micros(random.random_range(0..20_000))).await;
        }
        match guard.release().await {
            Ok(()) => drop(done.fetch_add(1, Ordering::Relaxed)),
            Err(Error::Store { .. } | Error::Lost { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// One master is killed, one is killed while its replica lacks the last writes, and one is stopped
/// and continued. With `replicas=1` no granted lock may be forgotten.
#[tokio::test]
#[expect(clippy::print_stderr, reason = "figures for the log")]
async fn no_process_writes_with_a_smaller_token_while_masters_fail_under_load() {
    let cluster = Cluster::start().await;
    let (names, resources) = (names(&cluster), Resources::default());
    let (over, done) = (AtomicBool::new(false), [(); 12].map(|()| AtomicUsize::new(0)));
    let managers = [(); 4].map(|()| quick_manager(&cluster, "replicas=1&ttl=2s"));
    let first = seed();
    let workers = done.iter().zip(0..).map(|(done, nth)| {
        works(managers[nth % 4].clone(), &names, (&resources, &over, done), first + nth as u64)
    });
    let workers: Vec<_> = workers.collect();
    let nemesis = async {
        let _ends_with_it = Over(&over);
        written_again(&resources, &names, "work begins", |_| true).await;

        let dies = cluster.node_of(&lock(&names[0])).await;
        dies.kill();
        written_again(&resources, &names, "the others go on", |key| key % 3 != 0).await;
        cluster.failed_over(dies).await;
        dies.revive().await;
        cluster.settled().await;
        written_again(&resources, &names, "work continues at the next master", |_| true).await;

        let (dies, slot) = (cluster.node_of(&lock(&names[1])).await, slot_of(&cluster, &names[1]));
        let behind = cluster.replica_of(slot).await.unwrap();
        cut_off(dies, behind).await;
        dies.kill();
        behind.continue_signal();
        cluster.failed_over(dies).await;
        dies.revive().await;
        cluster.settled().await;
        written_again(&resources, &names, "work continues at a master that lagged", |_| true).await;

        let stands = cluster.node_of(&lock(&names[2])).await;
        stands.stop_signal();
        cluster.failed_over(stands).await;
        stands.continue_signal();
        cluster.settled().await;
        written_again(
            &resources,
            &names,
            "work continues beside a master that was stopped",
            |_| true,
        )
        .await;
        let all = async || done.iter().all(|done| done.load(Ordering::Relaxed) > 0);
        eventually("each has got in", all).await;
    };
    tokio::join!(join_all(workers), nemesis);
    let writes = names.each_ref().map(|name| resources.writes_of(name));
    eprintln!("{done:?} holds, writes for each key: {writes:?}");
    assert_eq!(resources.damage(), [""; 0], "two holders, or a smaller token");
    for number in 0..60 {
        drop(acquire(&managers[number % 4], &format!("after-{number}")).await);
    }
    drop(managers);
    assert_no_trace(&cluster).await;
}

/// Ends the work also where the test fails, which would otherwise wait for it.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
