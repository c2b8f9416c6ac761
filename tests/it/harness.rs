//! The harness under test: what the other tests stand on must itself stand.

mod events;
mod eventually;
mod faults;
mod leash;
mod node;
mod proxy;
mod redis_server;
