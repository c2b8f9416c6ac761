//! The test harness: real servers of each test's own, a network that fails on command, and child
//! processes to kill.
//!
//! No test is skipped. If a server program is missing, the harness panics with the command that
//! installs it.

mod authority;
mod certificates;
mod cli;
mod clock;
mod cluster;
mod connections;
mod engine;
mod etcd;
mod events;
mod eventually;
mod independents;
mod leash;
mod leftovers;
mod log;
mod mariadb;
mod network;
mod node;
mod operator;
mod pgbouncer;
mod port;
mod postgres_server;
mod process;
mod prometheus;
mod proxy;
mod redis_server;
mod replicated;
mod resource_file;
mod rotation;
mod sentinels;
mod servers;
mod shared_file;
mod template;
mod term_file;
mod wire;
mod zookeeper;

pub use certificates::Certificates;
pub use cli::Cli;
pub use clock::{StoppedClock, pause, skip};
pub use cluster::{Cluster, ClusterBuilder};
pub use connections::own_connections;
pub use engine::{Engine, bare, for_store, patient, with_query};
pub use etcd::{Etcd, GrpcProxy, SecureEtcd};
pub use events::{Event, Events, capture_events, capture_events_from};
pub use eventually::{HUNG, eventually, in_time};
pub use independents::{Independents, IndependentsBuilder};
pub use leftovers::{assert_nobody_listens, assert_nothing_left, left, listened_to};
pub use mariadb::MariaDb;
pub use node::Node;
pub use operator::force_release;
pub use pgbouncer::PgBouncer;
pub use postgres_server::{PostgresServer, ServerCertificate};
pub use prometheus::{Prometheus, check_rules};
pub use proxy::{Fault, Proxy};
pub use redis_server::{RedisServer, RedisServerBuilder};
pub use replicated::Replicated;
pub use resource_file::{Overlap, ResourceFile};
pub use rotation::{Load, Release, Rotating, Worked};
pub use sentinels::{Sentinels, SentinelsBuilder};
pub use servers::Servers;
pub use term_file::TermFile;
pub use wire::{Wire, Wires};
pub use zookeeper::ZooKeeper;
