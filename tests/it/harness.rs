//! Tests of the harness itself.

mod cluster;
mod events;
mod eventually;
mod faults;
mod independents;
mod leash;
mod node;
mod proxy;
mod redis_server;
mod resource;
mod sentinels;
mod tls;
mod wire;
