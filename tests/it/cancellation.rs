//! Drops every public future at each of its await points, under every store fault.

mod acquire;
mod aftermath;
mod annotated;
mod begins;
mod body;
mod count;
mod hold;
mod nemesis;
mod shutdown;
mod stepped;
mod sweep;
mod wait_queue;
mod world;
