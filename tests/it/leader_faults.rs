//! Leaders on every store, with the faults of real processes and networks: killed, stopped, blocked, hung, cut off.
//!
//! Each leader is a process that writes to a resource under its term's number. At the end of every test the resource's
//! own record is judged: accepted writes of two terms never interleave, each term has one leader, a body writes only
//! while it runs, and no leader is refused while it holds its lease.
//!
//! `leaders` has the tests that need no process, and `redis::leaders` those that look into one server.
//!
//! What a leader does differs little from store to store: it holds a lock and waits in its queue, which
//! `store_contract`, `queue_promises` and `engine_faults` test on each. So only some tests run on all stores each time,
//! and all of them on a server that pushes and one that has tables. The modules `long` have the others.

mod campaign;
mod handover;
mod hung;
mod killed;
mod network;
mod random;
mod sessions;

pub(crate) use campaign::{Campaign, Leader};

/// Runs the tests of the suite on each store. All tests of a store share its servers.
macro_rules! leader_faults {
    (all: $($name:ident: $servers:ty),* $(,)?; some: $($other:ident: $others:ty),* $(,)?) => {
        $(mod $name {
            type Servers = $servers;

            const STORE: &str = stringify!($name);

            leader_faults!(on_each);
            leader_faults!(alike);

            mod long {
                use super::{STORE, Servers};

                leader_faults!(random);
            }
        })*
        $(mod $other {
            type Servers = $others;

            const STORE: &str = stringify!($other);

            leader_faults!(on_each);

            mod long {
                use super::{STORE, Servers};

                leader_faults!(alike);
                leader_faults!(random);
            }
        })*
    };
    // How a dead leader's lock ends, how a silent session does, and what else ends with a connection.
    (on_each) => {
        leader_faults!(killed, [the_next_leads_when_the_lease_of_a_killed_leader_ends]);
        leader_faults!(hung, [a_body_that_blocks_its_thread_is_replaced]);
        leader_faults!(handover, [a_new_leader_leaves_the_other_locks_of_the_last_one_alone]);
        leader_faults!(network, [a_leader_whose_replies_are_swallowed_is_replaced]);
    };
    (alike) => {
        leader_faults!(killed, [
            the_next_but_one_leads_when_the_first_follower_is_killed_too,
            a_leader_stopped_past_its_lease_is_refused,
        ]);
        leader_faults!(hung, [
            a_body_that_never_ends_its_await_is_replaced,
            a_body_that_blocks_the_only_thread_is_replaced,
        ]);
        leader_faults!(handover, [
            a_leader_that_resigns_is_followed_at_once,
            a_leader_that_resigns_during_a_renewal_is_followed_at_once,
            a_shutdown_ends_the_campaign,
        ]);
        leader_faults!(network, [
            a_short_cut_ends_no_term,
            a_leader_that_is_cut_off_is_dropped_before_the_next_writes,
            a_leader_whose_network_swallows_everything_is_replaced,
            a_follower_that_was_cut_off_leads_when_its_turn_comes,
        ]);
    };
    (random) => {
        leader_faults!(random, [
            terms_never_interleave_while_processes_and_networks_fail_at_random,
        ]);
    };
    ($file:ident, [$($test:ident),* $(,)?]) => {
        $(#[tokio::test]
        async fn $test() {
            let servers = <Servers as crate::queue_promises::Topology>::shared().await;
            // Two stores may share their servers.
            let key = format!("{STORE}_leads_{}", stringify!($test));
            let campaign = crate::leader_faults::Campaign::on(servers, key);
            crate::leader_faults::$file::$test(campaign).await;
        })*
    };
}

leader_faults! {
    all:
    redis: lockattr_tests::RedisServer,
    postgres: lockattr_tests::PostgresServer;
    some:
    cluster: lockattr_tests::Cluster,
    sentinel: lockattr_tests::Sentinels,
    redlock: lockattr_tests::Independents,
    zookeeper: lockattr_tests::ZooKeeper,
    etcd: lockattr_tests::Etcd,
    mysql: lockattr_tests::MariaDb,
    mysql_session: super::sessions::Sessions<lockattr_tests::MariaDb>,
    postgres_session: super::sessions::Sessions<lockattr_tests::PostgresServer>,
}
