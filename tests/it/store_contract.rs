//! One test suite for every store: it checks what the docs of `lockattr::store::Store` promise.

mod asked;
mod circles;
mod counts;
mod fleet;
mod keys;
mod notified;
mod one;
mod sharing;
mod stays;
mod survey;
mod wait_queue;

use std::time::Duration;

use lockattr::store::AnyStore;

const TTL: Duration = Duration::from_secs(20);
const LONGER: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(40);

/// A short lease that still outlasts the next request while many tests share two cores.
const MEANWHILE: Duration = Duration::from_millis(400);

/// Runs every test of the suite against each store. `$fleet` starts the servers that the store
/// needs.
macro_rules! store_contract {
    ($($name:ident: $fleet:ty),* $(,)?) => {
        $(mod $name {
            store_contract!($fleet, one, [
                a_free_lock_is_acquired,
                a_held_lock_names_its_holder,
                the_same_claim_is_granted_again,
                a_released_lock_is_free,
                a_stale_release_frees_no_lock,
                a_second_release_is_not_held,
                a_lease_ends_by_itself,
                a_renewed_lease_runs_on,
                a_renewal_never_shortens,
                a_renewal_resurrects_nothing,
                batches_answer_one_by_one_in_order,
                an_empty_batch_has_no_answers,
            ]);
            store_contract!($fleet, counts, [
                fencing_tokens_grow_in_order,
                odd_keys_are_kept_apart,
                one_of_many_gets_it,
                a_counter_under_the_lock_loses_nothing,
            ]);
            store_contract!($fleet, wait_queue, [
                queued_claims_are_granted_in_the_order_of_their_arrival,
                a_queued_claim_that_asks_again_keeps_its_place,
                a_granted_claim_that_asks_again_still_has_the_lock,
                a_claim_that_is_released_leaves_the_queue,
                a_caller_that_asks_only_once_does_not_overtake_the_queue,
                a_holder_learns_that_others_wait,
                fencing_tokens_grow_over_grants_too,
            ]);
            store_contract!($fleet, stays, [
                a_lock_that_stays_locked_expires,
                a_lock_may_stay_locked_for_longer_than_its_lease,
                a_lock_that_is_not_held_does_not_stay_locked,
            ]);
            store_contract!($fleet, sharing, [
                sharers_hold_together_and_an_exclusive_holder_alone,
                an_exclusive_claim_is_not_overtaken_by_sharers,
                permits_are_counted,
                shared_locks_and_permits_do_not_mix,
                the_lease_of_each_sharer_ends_by_itself,
                a_sharer_releases_only_its_own_lease,
            ]);
            store_contract!($fleet, keys, [
                several_keys_are_acquired_together_or_not_at_all,
                several_keys_are_renewed_and_released_as_one,
                the_same_keys_in_another_order_take_turns,
                a_claim_for_several_keys_is_not_overtaken_forever,
                several_keys_are_shared,
                batches_with_several_keys_answer_one_by_one,
            ]);
            store_contract!($fleet, circles, [
                a_deadlock_of_two_processes_is_broken_and_named,
                a_deadlock_of_three_processes_is_broken_by_one,
                a_note_of_a_dead_process_is_ignored,
            ]);
            store_contract!($fleet, survey, [
                held_locks_are_listed_and_nothing_else,
                sharers_of_a_lock_are_counted,
                holders_of_permits_are_counted,
                a_force_released_lock_goes_to_the_next_in_the_queue,
                force_release_of_a_free_lock_does_nothing,
                force_release_of_a_shared_lock_ends_all_sharers,
                a_claim_for_several_keys_loses_all_with_one,
                a_claim_that_waits_for_several_keys_holds_none,
            ]);
            #[tokio::test]
            async fn claims_of_a_manager_that_is_gone_are_passed_over() {
                let fleet = <$fleet as super::fleet::Fleet>::start().await;
                super::wait_queue::claims_of_a_manager_that_is_gone_are_passed_over(fleet).await;
            }
        })*
    };
    ($fleet:ty, $file:ident, [$($test:ident),* $(,)?]) => {
        $(#[tokio::test]
        async fn $test() {
            use crate::store_contract::{$file, fleet::Fleet};
            let fleet = <$fleet as Fleet>::start().await;
            $file::$test(fleet.node()).await;
            fleet.saw_nothing_wrong().await;
        })*
    };
}

store_contract!(
    memory: super::fleet::InMemory,
    quorum: super::fleet::QuorumInMemory,
    redis: super::fleet::OnRedis,
    cluster: super::fleet::OnCluster,
    redlock: super::fleet::OnRedlock,
    sentinel: super::fleet::OnSentinel,
    replicas: super::fleet::WithReplicas,
    redis_with_least_rights: super::fleet::WithLeastRights,
    postgres: super::fleet::OnPostgres,
    mysql: super::fleet::OnMysql,
    zookeeper: super::fleet::OnZooKeeper,
    etcd: super::fleet::OnEtcd,
);

/// Stores where a claim for several keys does not block other claims for a key that it cannot
/// acquire yet. ZooKeeper and etcd keep the order of claims themselves and are not among them.
mod handed_on {
    macro_rules! handed_on {
        ($($name:ident: $fleet:ident),* $(,)?) => {
            $(mod $name {
                store_contract!(crate::store_contract::fleet::$fleet, keys, [
                    a_claim_for_several_keys_is_overtaken_while_another_key_is_held,
                ]);
            })*
        };
    }

    handed_on!(
        memory: InMemory,
        quorum: QuorumInMemory,
        redis: OnRedis,
        cluster: OnCluster,
        redlock: OnRedlock,
        sentinel: OnSentinel,
        replicas: WithReplicas,
        postgres: OnPostgres,
        mysql: OnMysql,
    );
}

/// What the nodes of a quorum support beyond the suite.
mod one_of_many {
    macro_rules! one_of_many {
        ($($name:ident: $fleet:ty),* $(,)?) => {
            $(mod $name {
                store_contract!($fleet, notified, [
                    a_notified_claim_acquires_the_lock,
                    a_notified_claim_acquires_the_free_lock_past_other_waiters,
                    a_later_claim_does_not_overtake_a_notified_one,
                    a_queued_claim_is_granted_the_lock_without_a_request,
                    a_claim_that_acquires_before_its_notification_has_left_the_queue,
                    one_claim_at_a_time_is_notified,
                    a_quiet_release_notifies_no_claim_and_keeps_the_place,
                    a_hint_counts_instead_of_the_clock,
                    a_renewal_writes_a_token_back_where_the_lock_is_held,
                ]);
            })*
        };
    }

    one_of_many!(memory: crate::store_contract::fleet::InMemory, redis: crate::store_contract::fleet::OnRedis);
}

/// The contract of stores whose locks belong to a connection: no TTL, no holder name, one key per
/// claim.
mod sessions {
    macro_rules! sessions {
        ($($name:ident: $fleet:ident),* $(,)?) => {
            $(mod $name {
                store_contract!(crate::store_contract::fleet::$fleet, one, [
                    the_same_claim_is_granted_again_without_end,
                    a_released_lock_is_free,
                    a_stale_release_frees_no_lock,
                    a_second_release_is_not_held,
                    a_renewal_resurrects_nothing,
                    an_empty_batch_has_no_answers,
                ]);
                store_contract!(crate::store_contract::fleet::$fleet, counts, [
                    fencing_tokens_grow_in_order,
                    one_of_many_gets_it,
                    a_counter_under_the_lock_loses_nothing,
                ]);
                store_contract!(crate::store_contract::fleet::$fleet, wait_queue, [
                    a_granted_claim_that_asks_again_still_has_the_lock,
                    a_claim_that_is_released_leaves_the_queue,
                    fencing_tokens_grow_over_grants_too,
                ]);
                store_contract!(crate::store_contract::fleet::$fleet, survey, [
                    locks_without_names_cannot_be_listed,
                    a_force_released_lock_goes_to_the_next_in_the_queue,
                    force_release_of_a_free_lock_does_nothing,
                ]);
            })*
        };
    }

    sessions!(mysql: OnMysqlSessions, postgres: OnPostgresSessions);
}

/// PostgreSQL cannot hash a key with a zero byte, so its session store rejects such keys.
mod any_key {
    mod mysql {
        store_contract!(
            crate::store_contract::fleet::OnMysqlSessions,
            counts,
            [odd_keys_are_kept_apart,]
        );
    }
}

/// What session stores also support if they know their holders and their locks can be shared.
mod shared_sessions {
    macro_rules! shared_sessions {
        ($($name:ident: $fleet:ident),* $(,)?) => {
            $(mod $name {
                use crate::store_contract::fleet::{Fleet, $fleet};

                store_contract!($fleet, one, [
                    a_free_lock_is_acquired,
                    a_held_lock_names_its_holder,
                    the_same_claim_is_granted_again,
                    a_lease_ends_by_itself,
                    a_renewed_lease_runs_on,
                    a_renewal_never_shortens,
                    batches_answer_one_by_one_in_order,
                ]);
                store_contract!($fleet, wait_queue, [
                    queued_claims_are_granted_in_the_order_of_their_arrival,
                    a_queued_claim_that_asks_again_keeps_its_place,
                    a_holder_learns_that_others_wait,
                ]);
                store_contract!($fleet, circles, [
                    a_deadlock_of_two_processes_is_broken_and_named,
                ]);
                store_contract!($fleet, stays, [
                    a_lock_may_stay_locked_for_longer_than_its_lease,
                    a_lock_that_is_not_held_does_not_stay_locked,
                ]);
                store_contract!($fleet, sharing, [
                    sharers_hold_together_and_an_exclusive_holder_alone,
                    an_exclusive_claim_is_not_overtaken_by_sharers,
                    a_sharer_releases_only_its_own_lease,
                ]);
                store_contract!($fleet, keys, [
                    several_keys_are_acquired_together_or_not_at_all,
                    several_keys_are_renewed_and_released_as_one,
                    the_same_keys_in_another_order_take_turns,
                    several_keys_are_shared,
                    batches_with_several_keys_answer_one_by_one,
                ]);
                store_contract!($fleet, survey, [
                    force_release_of_a_shared_lock_ends_all_sharers,
                    a_claim_for_several_keys_loses_all_with_one,
                ]);
                #[tokio::test]
                async fn claims_of_a_manager_that_is_gone_are_passed_over() {
                    let fleet = $fleet::start().await;
                    crate::store_contract::wait_queue::claims_of_a_manager_that_is_gone_are_passed_over(
                        fleet,
                    )
                    .await;
                }
            })*
        };
    }

    shared_sessions!(postgres: OnPostgresSessions);
}
