//! Five servers whose network fails at random, under load: only one client writes at a time, and
//! its token is greater than all before.
//!
//! `LOCKATTR_CHAOS_SECONDS=600 cargo test -p lockattr-tests --test it redlock::chaos --
//! --nocapture` runs for ten minutes; `LOCKATTR_SEED` repeats a run's faults.

#![allow(clippy::print_stdout, reason = "what is needed to reproduce a failed run")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lockattr::{Error, Lease, LockManager, LockOptions};
use lockattr_history::{Resources, seed};
use lockattr_tests::{Independents, Proxy, assert_nothing_left, eventually, with_query};
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use tokio::time::{Instant, sleep};

const KEYS: usize = 2;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect(name))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_cut_and_healed_at_random_under_load() {
    let seconds = number("LOCKATTR_CHAOS_SECONDS").unwrap_or(8);
    let mut random = StdRng::seed_from_u64(seed());
    let servers = Independents::start(5).await;
    let query =
        "durable=true&ttl=400ms&response_timeout=100ms&connect_timeout=100ms&heartbeat=200ms";
    let url = with_query(&servers.url_through_proxies().await, query);
    let proxies = servers.proxies().await;
    let (resources, over) = (&Resources::default(), &AtomicBool::new(false));

    let worker = async |seed: u64, manager: LockManager| {
        let (mut random, mut done) = (StdRng::seed_from_u64(seed), 0_u64);
        while !over.load(Ordering::Relaxed) {
            let key = random.random_range(0..KEYS).to_string();
            let pause = Duration::from_micros(random.random_range(0..4000));
            let body = async |lease: &Lease| {
                for _ in 0..4 {
                    // There is no await between the check and the write.
                    if lease.ensure_held().is_ok() {
                        resources.add(&key, lease.fencing_token().get());
                    }
                    sleep(pause).await;
                }
            };
            let wait = Duration::from_millis(random.random_range(1..2000));
            let options = LockOptions::new().wait(wait);
            match manager.with_lock(&key, options, body).await {
                Ok(()) => done += 1,
                Err(Error::Contended { .. } | Error::Store { .. } | Error::Lost { .. }) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        done
    };
    let mut workers = Vec::new();
    for _ in 0..3 {
        let manager = LockManager::builder().url(&url).build().unwrap();
        workers.extend((0..2).map(|_| worker(random.next_u64(), manager.clone())));
    }
    let nemesis = async {
        let ends = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < ends {
            fault(&proxies[random.random_range(0..5)], &mut random).await;
            sleep(Duration::from_millis(random.random_range(5..250))).await;
        }
        for proxy in proxies {
            heal(proxy).await;
        }
        let before = resources.writes();
        let works = async || resources.writes() > before + 100;
        eventually("the faults are over, and callers acquire", works).await;
        over.store(true, Ordering::Relaxed);
    };
    let (_, done) = tokio::join!(nemesis, futures_util::future::join_all(workers));
    let writes = resources.writes();
    println!("{} holds, {writes} writes in {seconds} s", done.iter().sum::<u64>());
    assert_eq!(resources.damage(), [""; 0], "two holders, or a smaller token");
    assert_nothing_left(&servers).await;
}

async fn fault(proxy: &Proxy, random: &mut StdRng) {
    match random.random_range(0..8) {
        0 => {
            proxy.cut().await;
            proxy.freeze();
        }
        1 => proxy.freeze(),
        2 => proxy.swallow_replies(),
        3 => proxy.swallow_requests(),
        4 => proxy.delay(Duration::from_millis(random.random_range(1..30))),
        _ => heal(proxy).await,
    }
}

async fn heal(proxy: &Proxy) {
    proxy.pass();
    // A stream that has lost bytes stays silent.
    proxy.cut().await;
}
