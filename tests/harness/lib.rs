//! What the tests stand on: real servers that are theirs alone, a network that fails on command,
//! processes to kill.
//!
//! Nothing here skips. A server that is not installed is a panic that says how to install it.

mod cli;
mod cluster;
mod events;
mod eventually;
mod independents;
mod leash;
mod leftovers;
mod node;
mod port;
mod process;
mod proxy;
mod redis_server;
mod sentinels;
mod servers;

pub use cli::Cli;
pub use cluster::{Cluster, ClusterBuilder};
pub use events::{Event, Events, capture_events, capture_events_from};
pub use eventually::eventually;
pub use independents::{Independents, IndependentsBuilder};
pub use leftovers::{assert_nobody_listens, assert_nothing_left, assert_nothing_left_within};
pub use node::Node;
pub use proxy::{Fault, Proxy};
pub use redis_server::{RedisServer, RedisServerBuilder};
pub use sentinels::{Sentinels, SentinelsBuilder};
pub use servers::Servers;
