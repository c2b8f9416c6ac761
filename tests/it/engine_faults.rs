//! One fault suite for every engine: processes and servers that are killed or stopped, and a
//! network that fails between them.
//!
//! Each test checks the end state: no two processes held the lock at once, fencing tokens grew,
//! waiters acquired the lock, and nothing of ours is left in the store. Nothing has to be quick: a lease
//! that must not end lasts longer than a test waits, as does the time after which a waiter that
//! learns of no lease asks again by itself. Lower bounds are leases, by the clock of their holder.

mod case;
mod chaos;
mod network;
mod processes;
mod servers;
mod times;

use case::add_one;
pub(crate) use case::{Case, connected, lease_of};

/// Runs every test of the suite on each engine.
macro_rules! engine_faults {
    ($($name:ident: $engine:ty),* $(,)?) => {
        $(pub(crate) mod $name {
            type Server = $engine;
            // Ensembles take seconds to start, so tests share one. Each test has its own key and
            // resource.
            pub(crate) static SHARED: tokio::sync::OnceCell<Server> = tokio::sync::OnceCell::const_new();

            engine_faults!(shared, processes, [
                the_lock_of_a_killed_holder_goes_to_the_next_when_its_lease_ends,
                a_killed_head_of_the_queue_is_passed_over,
                a_holder_stopped_past_its_lease_writes_no_more,
            ]);
            engine_faults!(alone, servers, [
                a_restart_with_a_holder_and_waiters_makes_no_second_holder,
                stopped_servers_are_an_outage_and_no_loss_of_order,
            ]);
            engine_faults!(shared, network, [
                a_holder_that_is_cut_off_has_lost_before_the_next_gets_in,
                a_holder_whose_network_is_silent_has_lost_before_the_next_gets_in,
                a_waiter_that_is_cut_off_gets_in_when_the_network_is_back,
                a_waiter_that_is_cut_off_times_out_and_leaves_nothing,
                an_acquire_without_an_answer_leaves_nothing,
                a_release_without_an_answer_frees_the_lock,
                a_caller_dropped_during_a_network_outage_leaves_nothing,
                a_slow_network_loses_nothing,
            ]);
            engine_faults!(shared, times, [
                times_without_a_bound_work,
            ]);
            engine_faults!(shared, chaos, [
                a_counter_of_three_processes_loses_nothing_while_their_networks_fail,
            ]);
        })*
    };
    (shared, $file:ident, [$($test:ident),* $(,)?]) => {
        $(#[tokio::test]
        async fn $test() {
            // The server may have a method of its own with the same name.
            let start = <Server as lockattr_tests::Engine>::start;
            let server = SHARED.get_or_init(start).await;
            let case = crate::engine_faults::Case::among_others(server, stringify!($test));
            crate::engine_faults::$file::$test(case).await;
        })*
    };
    (alone, $file:ident, [$($test:ident),* $(,)?]) => {
        $(#[tokio::test]
        async fn $test() {
            let server = <Server as lockattr_tests::Engine>::start().await;
            let case = crate::engine_faults::Case::alone(&server, stringify!($test));
            crate::engine_faults::$file::$test(case).await;
        })*
    };
}

lockattr_tests::engines!(engine_faults);
