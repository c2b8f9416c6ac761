//! The tests of `it` that take longest: they wait for failovers and outages, or send thousands of requests at once.
//! Tests beside them cover the same code in a shorter time.

/// The names of these tests.
pub(super) const TESTS: [&str; 31] = [
    "etcd::left::more_locks_than_a_page_has_are_listed",
    "etcd::members::killing_the_leader_loses_no_lock_and_no_place_in_the_queue",
    "etcd::storm::thousands_of_tasks_lose_no_lease_and_fail_no_release",
    "key::no_two_value_lists_render_the_same_key",
    "mysql::overload::a_long_queue_of_requests_loses_no_lease_and_fails_no_release",
    "mysql::rights::a_process_that_cannot_be_woken_polls_in_time",
    "mysql::swept::what_has_ended_is_deleted_whatever_calls_a_process_makes",
    "postgres::sessions::a_lock_outlives_a_crash_of_the_server",
    "postgres::slow_commits::a_caller_that_gives_up_in_the_crowd_learns_of_no_holder",
    "postgres::slow_commits::a_thousand_tasks_lose_no_lease_and_no_release",
    "postgres::swept::what_has_ended_is_deleted_whatever_calls_a_process_makes",
    "postgres_session::storms::a_caller_that_gives_up_in_the_crowd_learns_of_no_holder",
    "redis::cluster::load::no_process_writes_with_a_smaller_token_while_masters_fail_under_load",
    "redis::cluster::many::a_thousand_leases_over_all_nodes_are_renewed",
    "redis::cluster::replicas::a_lease_whose_slot_migrates_counts_with_the_replica_of_the_new_node",
    "redis::cluster::replicas::no_lock_is_lost_when_a_master_is_killed_right_after_the_acquire",
    "redis::cluster::slots::a_lease_is_renewed_while_its_slot_migrates",
    "redis::cluster::waiters::unused_channels_are_unsubscribed_and_the_others_kept",
    "redis::hostile::a_lock_counts_as_held_only_by_a_well_formed_reply",
    "redis::sentinel::failover::a_release_that_its_replicas_never_got_costs_the_rest_of_the_lease",
    "redis::sentinel::failover::a_replicated_lease_continues_at_the_new_master",
    "redis::sentinel::failover::no_two_hold_at_once_while_masters_die_under_load",
    "redis::sentinel::promise::no_lock_is_lost_when_the_master_is_killed_right_after_the_acquire",
    "redis::wait_queue::crowd::ten_thousand_callers_whose_wait_ends_together_are_all_contended",
    "redlock::chaos::nodes_cut_and_healed_at_random_under_load",
    "scale::of_ten_thousand_leases_stolen_and_deleted_ones_are_lost_and_the_others_renewed",
    "scale::ten_thousand_leases_are_renewed_in_few_batches",
    "zookeeper::followers::a_server_that_dies_loses_no_lock_of_its_clients",
    "zookeeper::followers::a_session_abandoned_in_an_outage_blocks_no_lock_after_it",
    "zookeeper::followers::freezing_the_leader_loses_no_lock",
    "zookeeper::storm::thousands_of_tasks_lose_no_lease_and_fail_no_release",
];

/// Parts of the names of tests that repeat on every store, or for a user with few rights, what `test` runs on two
/// stores, or for a user with all. There, the suites of every store prove what the tests rest on: `store_contract`,
/// `queue_promises` and `engine_faults`; and `redis::rights` and `redis::cluster::rights`, which commands the rights allow.
/// And those that keep both cores busy on every engine: changed replies, and jobs by the hundred over a slow link.
pub(super) const REPEATED: [&str; 4] = [
    "::jobs_with_keys_of_their_own_are_never_contended",
    "::long::",
    "mutated::",
    "store_contract::redis_with_least_rights::",
];

#[cfg(test)]
mod tests {
    use std::fs;

    use super::TESTS;
    use crate::child;

    /// A test that was renamed would run nowhere as a long one.
    #[test]
    fn each_name_is_that_of_a_test() {
        for name in TESTS {
            let (module, test) = name.rsplit_once("::").expect("a module");
            let path = child::root().join("tests/it").join(module.replace("::", "/"));
            let text = fs::read_to_string(path.with_extension("rs"));
            let text = text.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(text.contains(&format!("fn {test}(")), "{name}");
        }
    }
}
