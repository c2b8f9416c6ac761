//! The crate `lockattr-contract`, the one suite for every store, on each of our stores.

mod fleet;
mod nameless;

use std::time::Duration;

use lockattr::store::AnyStore;

/// A lease that does not end.
const TTL: Duration = Duration::from_secs(600);

/// Runs the suite against each store. `$fleet` starts the servers that the store needs.
macro_rules! store_contract {
    ($($name:ident: $fleet:ident),* $(,)?) => {
        $(mod $name {
            lockattr_contract::store_contract!(crate::store_contract::fleet::$fleet);
        })*
    };
    ($($name:ident: $fleet:ident),* without: $without:tt) => {
        $(mod $name {
            lockattr_contract::store_contract!(
                crate::store_contract::fleet::$fleet,
                without: $without
            );
        })*
    };
    ($($name:ident: $fleet:ident),* group: $group:ident) => {
        $(mod $name {
            lockattr_contract::store_contract!(
                crate::store_contract::fleet::$fleet,
                group: $group
            );
        })*
    };
    ($($name:ident: $fleet:ident),* only: $only:tt) => {
        $(mod $name {
            lockattr_contract::store_contract!(crate::store_contract::fleet::$fleet, only: $only);
        })*
    };
}

store_contract!(
    memory: InMemory,
    redis: OnRedis,
    cluster: OnCluster,
    sentinel: OnSentinel,
    replicas: WithReplicas,
    redis_with_least_rights: WithLeastRights,
);

store_contract!(
    quorum: QuorumInMemory,
    redlock: OnRedlock
    without: {
        downgrade: "a majority cannot change the mode of a lock in one step",
    }
);

store_contract!(
    postgres: OnPostgres,
    mysql: OnMysql
    without: {
        companions: "each reader of a process has an entry of its own in the queue",
        downgrade: "each reader asks the store, also while a writer of its process holds the lock",
    }
);

store_contract!(
    zookeeper: OnZooKeeper,
    etcd: OnEtcd
    without: {
        companions: "each reader of a process has an entry of its own in the queue",
        downgrade: "each reader asks the store, also while a writer of its process holds the lock",
        done: "a lock ends with the session of its process",
    }
);

/// Stores where a claim for several keys does not block other claims for a key that it cannot
/// acquire yet. ZooKeeper and etcd keep the order of claims themselves and are not among them.
mod handed_on {
    store_contract!(
        memory: InMemory,
        quorum: QuorumInMemory,
        redis: OnRedis,
        cluster: OnCluster,
        redlock: OnRedlock,
        sentinel: OnSentinel,
        replicas: WithReplicas,
        postgres: OnPostgres,
        mysql: OnMysql
        group: overtaking
    );
}

/// What the nodes of a quorum support beyond the suite.
mod one_of_many {
    store_contract!(memory: InMemory, redis: OnRedis group: quorum_node);
}

/// The contract of stores whose locks belong to a connection: no TTL, no holder name, one key per
/// claim.
mod sessions {
    store_contract!(
        mysql: OnMysqlSessions,
        postgres: OnPostgresSessions
        only: [
            the_same_claim_is_granted_again_without_end,
            a_released_lock_is_free,
            a_stale_release_frees_no_lock,
            a_second_release_is_not_held,
            a_renewal_resurrects_nothing,
            an_empty_batch_has_no_answers,
            a_lock_excludes_other_processes,
            fencing_tokens_grow_in_order,
            fencing_tokens_grow_across_processes,
            fencing_tokens_grow_for_a_process_that_starts_later,
            one_of_many_gets_it,
            a_counter_under_the_lock_loses_nothing,
            a_granted_claim_that_asks_again_still_has_the_lock,
            a_claim_that_is_released_leaves_the_queue,
            fencing_tokens_grow_over_grants_too,
            a_store_that_cannot_list_says_so,
            a_store_that_keeps_no_key_done_says_so,
            a_force_released_lock_goes_to_the_next_in_the_queue,
            a_lock_is_taken_only_from_the_holder_that_was_seen,
        ]
    );
}

/// PostgreSQL cannot hash a key with a zero byte, so its session store rejects such keys.
mod any_key {
    store_contract!(mysql: OnMysqlSessions only: [odd_keys_are_kept_apart]);
}

/// What session stores also support if they know their holders and their locks can be shared.
mod shared_sessions {
    store_contract!(
        postgres: OnPostgresSessions
        only: [
            a_free_lock_is_acquired,
            a_held_lock_names_its_holder,
            the_same_claim_is_granted_again,
            a_lease_ends_by_itself,
            a_renewed_lease_runs_on,
            a_renewal_never_shortens,
            batches_answer_one_by_one_in_order,
            queued_claims_are_granted_in_the_order_of_their_arrival,
            a_queued_claim_that_asks_again_keeps_its_place,
            a_holder_learns_that_others_wait,
            claims_of_a_manager_that_is_gone_are_passed_over,
            a_deadlock_of_two_processes_is_broken_and_named,
            a_deadlock_through_two_managers_is_broken,
            a_lock_may_stay_locked_for_longer_than_its_lease,
            a_lock_that_is_not_held_does_not_stay_locked,
            sharers_hold_together_and_an_exclusive_holder_alone,
            an_exclusive_claim_is_not_overtaken_by_sharers,
            a_sharer_releases_only_its_own_lease,
            several_keys_are_acquired_together_or_not_at_all,
            several_keys_are_renewed_and_released_as_one,
            the_same_keys_in_another_order_take_turns,
            several_keys_are_shared,
            batches_with_several_keys_answer_one_by_one,
            of_several_holders_only_the_one_that_was_seen_loses_the_lock,
            a_claim_for_several_keys_loses_all_with_one,
        ]
    );
}
