//! Invalid options are refused when they are used, with a message that says what to do.

use std::time::Duration;

use lockattr::store::{Credentials, MemoryStore};
use lockattr::{Error, LockManager, LockManagerBuilder, LockOptions, Mode, distributed_lock};

const SECOND: Duration = Duration::from_secs(1);

/// A manager whose leases last ten seconds by default.
fn manager() -> LockManager {
    LockManager::builder().url("memory://?ttl=10s").build().unwrap()
}

/// Returns the message that refuses an acquisition with `options`, or `None` if it is granted.
async fn refusal(options: LockOptions) -> Option<String> {
    match manager().acquire("job", options).await {
        Ok(guard) => {
            guard.ensure_held().unwrap();
            None
        }
        Err(Error::InvalidOptions(sentence)) => Some(sentence),
        Err(other) => panic!("{other:?}"),
    }
}

async fn refused(options: LockOptions, sentence: &str) {
    let shown = format!("{options:?}");
    assert_eq!(refusal(options).await.as_deref(), Some(sentence), "{shown}");
}

async fn granted(options: LockOptions) {
    let shown = format!("{options:?}");
    assert_eq!(refusal(options).await, None, "{shown}");
}

/// Red without: the arm for 0 in `LockOptions::sharing`.
#[tokio::test(start_paused = true)]
async fn a_semaphore_without_permits_is_refused() {
    let sentence = "`permits` is 0, so the lock could never be held: write 1 or more";
    refused(LockOptions::new().permits(0), sentence).await;
    for permits in [1, 2, u32::MAX] {
        granted(LockOptions::new().permits(permits)).await;
    }
}

/// Red without: the first arm of `LockOptions::sharing`.
#[tokio::test(start_paused = true)]
async fn permits_beside_a_mode_are_refused() {
    let sentence = "`mode` and `permits` are both set: leave `permits` out for a read/write lock, \
                    or `mode` for a semaphore";
    // Also with the default mode, and in either order.
    for mode in [Mode::Exclusive, Mode::Shared] {
        refused(LockOptions::new().mode(mode).permits(3), sentence).await;
        refused(LockOptions::new().permits(3).mode(mode), sentence).await;
        granted(LockOptions::new().mode(mode)).await;
    }
}

/// Red without: the first comparison in `LockOptions::check_hold_at_least`.
#[tokio::test(start_paused = true)]
async fn hold_at_least_beyond_a_lease_that_is_not_renewed_is_refused() {
    let least = |least| LockOptions::new().hold_at_least(least).renew(false);
    let sentence = "`hold_at_least` (11s) is longer than `ttl` (10s), which ends the lease without \
                    `renew`: lengthen `ttl`, or leave `renew` on";
    refused(least(11 * SECOND), sentence).await;
    refused(least(11 * SECOND).ttl(10 * SECOND), sentence).await;
    granted(least(10 * SECOND)).await;
    granted(least(11 * SECOND).ttl(11 * SECOND)).await;
    granted(least(11 * SECOND).renew(true)).await;
}

/// Red without: the second comparison in `LockOptions::check_hold_at_least`.
#[tokio::test(start_paused = true)]
async fn hold_at_least_beyond_max_hold_is_refused() {
    let capped = LockOptions::new().max_hold(20 * SECOND);
    let sentence = "`hold_at_least` (21s) is longer than `max_hold` (20s): shorten it, or lengthen \
                    `max_hold`";
    refused(capped.clone().hold_at_least(21 * SECOND), sentence).await;
    granted(capped.hold_at_least(20 * SECOND)).await;
}

/// Every way to acquire refuses them, and leaves nothing behind.
#[tokio::test(start_paused = true)]
async fn every_way_to_acquire_refuses_invalid_options() {
    let manager = manager();
    let none = LockOptions::new().permits(0);
    let error = manager.try_acquire("job", none.clone()).await.unwrap_err();
    assert!(matches!(error, Error::InvalidOptions(_)), "{error:?}");
    let body = async |_: &lockattr::Lease| panic!("the body ran");
    let error = manager.with_lock("job", none, body).await.unwrap_err();
    assert!(matches!(error, Error::InvalidOptions(_)), "{error:?}");
    assert_eq!(manager.holder("job").await.unwrap(), None);
}

#[distributed_lock(key = "partner", permits = permits)]
async fn any_permits(permits: u32) -> Result<u32, Error> {
    Ok(permits)
}

#[distributed_lock(key = "job", hold_at_least = least, ttl = "1s", renew = renew)]
async fn any_least(least: Duration, renew: bool) -> Result<(), Error> {
    Ok(())
}

#[distributed_lock(keys = ["stock", "shelf"], permits = permits)]
async fn any_permits_of_several(permits: u32) -> Result<u32, Error> {
    Ok(permits)
}

#[tokio::test(start_paused = true)]
async fn the_attribute_refuses_at_run_time_what_it_could_not_check_before() {
    let calls = async {
        for error in [
            any_permits(0).await.unwrap_err(),
            any_permits_of_several(0).await.unwrap_err(),
            any_least(2 * SECOND, false).await.unwrap_err(),
        ] {
            assert!(matches!(error, Error::InvalidOptions(_)), "{error:?}");
        }
        assert_eq!(any_permits(2).await.unwrap(), 2);
        assert_eq!(any_permits_of_several(2).await.unwrap(), 2);
        any_least(SECOND, false).await.unwrap();
    };
    manager().scope(calls).await;
}

/// Red without: the check of `server_setting` in `LockManagerBuilder::build`.
#[test]
fn a_server_setting_beside_a_store_of_the_programs_own_is_refused() {
    let builder = || LockManager::builder().store(MemoryStore::new());
    let provide = || async { Ok::<_, Error>(Credentials::password_only("hunter2")) };
    for (name, builder) in [
        ("connections", builder().connections(4)),
        ("connect_timeout", builder().connect_timeout(Duration::from_secs(1))),
        ("response_timeout", builder().response_timeout(Duration::from_secs(1))),
        ("replicas", builder().replicas(1)),
        ("heartbeat", builder().heartbeat(Duration::from_secs(1))),
        ("client_cert", builder().client_cert("/client.pem").ca("/ca.pem")),
        ("credentials", builder().credentials(provide)),
    ] {
        let error = builder.build().map(drop).unwrap_err().to_string();
        assert!(
            error.contains(&format!("`{name}`")) && error.contains("`ServerOptions`"),
            "{error}"
        );
    }
    assert!(builder().ttl(Duration::from_secs(1)).build().is_ok());
}

#[test]
fn a_manager_has_one_store() {
    let (none, url) = (LockManager::builder(), LockManager::builder().url("memory://"));
    let refused = |builder: LockManagerBuilder| builder.build().map(drop).unwrap_err().to_string();
    assert!(refused(none).contains("give it a `url`"));
    assert!(refused(url.store(MemoryStore::new())).contains("either `url` or `store`"));
}

#[tokio::test]
async fn a_library_finds_the_programs_manager() {
    assert!(matches!(LockManager::installed(), Err(Error::NoManager)));
    let manager = manager();
    let found = manager.scope(async { LockManager::installed() }).await.unwrap();
    let _held = manager.acquire("here", LockOptions::new()).await.unwrap();
    assert_eq!(
        found.held_locks().await.unwrap().len(),
        1,
        "another manager than that of the scope"
    );
}

/// Everything that counts with the times of a manager and of a call.
async fn uses(manager: &LockManager, options: &LockOptions, time: Duration) -> Result<(), Error> {
    let guard = manager.acquire("job", options.clone()).await?;
    let waiter = tokio::spawn({
        let (manager, options) = (manager.clone(), options.clone());
        async move { manager.acquire("job", options).await }
    });
    tokio::time::sleep(SECOND).await;
    guard.report_progress();
    guard.ensure_held()?;
    assert!(guard.remaining() > SECOND);
    assert!(matches!(guard.extend(time).await, Err(Error::InvalidOptions(_))));
    guard.release().await?;
    waiter.await.unwrap()?.release().await?;
    let done = manager.acquire("done", options.clone()).await?.release_done(time).await;
    assert!(matches!(done, Err(Error::InvalidOptions(_))), "{done:?}");
    let once = async |_: &lockattr::Lease| Ok::<_, Error>(());
    let once = manager.with_lock_once_per("once", time, options.clone(), once).await;
    assert!(matches!(once, Err(Error::InvalidOptions(_))), "{once:?}");
    manager.lead("led", options.clone(), async |_term| ()).await.or_else(|error| match error {
        Error::InvalidOptions(_) => Ok(()),
        error => Err(error),
    })
}

/// Programs write `Duration::MAX` for "without a bound". Such a time works, or is refused; nothing panics.
///
/// Red without: `at_most_a_century`.
#[tokio::test(start_paused = true)]
async fn no_time_is_so_long_that_a_clock_overflows() {
    type Option = fn(LockOptions, Duration) -> LockOptions;
    type Setting = fn(LockManagerBuilder, Duration) -> LockManagerBuilder;
    let options: [(&str, bool, Option); 6] = [
        ("wait", true, LockOptions::wait),
        ("retry_delay", true, LockOptions::retry_delay),
        ("max_hold", true, LockOptions::max_hold),
        ("progress_within", true, LockOptions::progress_within),
        ("ttl", false, LockOptions::ttl),
        ("hold_at_least", false, LockOptions::hold_at_least),
    ];
    let settings: [(&str, bool, Setting); 9] = [
        ("wait", true, LockManagerBuilder::wait),
        ("retry_delay", true, LockManagerBuilder::retry_delay),
        ("shutdown_timeout", true, LockManagerBuilder::shutdown_timeout),
        ("linger", true, LockManagerBuilder::linger),
        ("max_handoff_time", true, LockManagerBuilder::max_handoff_time),
        ("connect_timeout", true, LockManagerBuilder::connect_timeout),
        ("response_timeout", true, LockManagerBuilder::response_timeout),
        ("heartbeat", true, LockManagerBuilder::heartbeat),
        ("ttl", false, LockManagerBuilder::ttl),
    ];
    for time in [Duration::MAX, Duration::from_millis(u64::MAX)] {
        for (name, works, option) in options {
            let manager = manager();
            let used = uses(&manager, &option(LockOptions::new(), time), time).await;
            assert_eq!(used.is_ok(), works, "{name}: {used:?}");
            assert!(works || matches!(used, Err(Error::InvalidOptions(_))), "{name}: {used:?}");
            manager.shutdown().await;
        }
        let by_url =
            |name: &str| LockManager::builder().url(format!("memory://?{name}=500000000000y"));
        for (name, works, setting) in settings {
            let of_a_server = ["connect_timeout", "response_timeout", "heartbeat"].contains(&name);
            let in_the_url = (!of_a_server).then(|| by_url(name));
            let set = setting(LockManager::builder().url("memory://"), time);
            for builder in [Some(set), in_the_url].into_iter().flatten() {
                let built = builder.build();
                assert_eq!(built.is_ok(), works, "{name}");
                let Ok(manager) = built else { continue };
                uses(&manager, &LockOptions::new(), time).await.expect(name);
                manager.shutdown().await;
            }
        }
    }
}

#[distributed_lock(
    key = "bounds",
    wait = "500000000000y",
    retry_delay = "500000000000y",
    max_hold = "500000000000y",
    progress_within = "500000000000y"
)]
async fn without_bounds() -> Result<(), Error> {
    tokio::time::sleep(SECOND).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_attribute_takes_times_that_no_clock_reaches() {
    let both = async { tokio::join!(without_bounds(), without_bounds()) };
    let both = manager().scope(both).await;
    assert!(both.0.is_ok() && both.1.is_ok(), "{both:?}");
}
