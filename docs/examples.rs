//! The guide's examples as doc tests: each chapter is a module here, and `cargo test` runs its blocks.

/// One module for each page, so that a failure names it.
#[cfg(doctest)]
macro_rules! pages {
    ($($name:ident: $page:literal),* $(,)?) => {
        $(#[doc = include_str!(concat!("guide/", $page))] mod $name {})*
    };
}

#[cfg(doctest)]
pages! {
    first_use: "01-first-use.md",
    the_attribute: "02-the-attribute.md",
    ttl_wait_retry: "04-ttl-wait-retry.md",
    errors: "05-errors.md",
    losing_a_lease: "06-losing-a-lease.md",
    keys_readers_permits: "07-keys-readers-permits.md",
    scheduled_jobs: "08-scheduled-jobs.md",
    plain_functions_streams: "09-plain-functions-streams.md",
    choosing_a_store: "10-choosing-a-store.md",
    testing: "11-testing.md",
    observing: "12-observing.md",
    lock_order: "13-lock-order.md",
    operations: "14-operations.md",
    performance: "15-performance.md",
    upgrading: "16-upgrading.md",
    in_a_library: "17-in-a-library.md",
    writing_a_store: "18-writing-a-store.md",
    leaders: "19-leaders.md",
    shared_results: "20-shared-results.md",
    axum_sqlx: "axum-sqlx.md",
    from_redisson: "migrating/redisson.md",
    from_lock4j: "migrating/lock4j.md",
    from_shedlock: "migrating/shedlock.md",
    from_redis_py: "migrating/redis-py.md",
    from_node_redlock: "migrating/node-redlock.md",
    from_rslock: "migrating/rslock.md",
    from_redis_by_hand: "migrating/redis-by-hand.md",
    from_sqlx: "migrating/sqlx.md",
    from_distributedlock_net: "migrating/distributedlock-net.md",
}
