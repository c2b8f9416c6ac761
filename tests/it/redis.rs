//! A real Redis server: the value of a lock in it, how clients reach it, and what happens when it
//! goes away.

mod away;
mod background;
mod blocked;
mod cancellation;
mod cluster;
mod connections;
mod credentials;
mod fencing;
mod forks;
mod free;
mod herd;
mod hostile;
mod leaders;
mod mark_done;
mod meddling;
mod native;
mod odd_replies;
mod outcome;
mod own_client;
mod processes;
mod reach;
mod refusals;
mod replicas;
mod rights;
mod runtimes;
mod sentinel;
mod stopped;
mod survey;
mod tls;
mod unknown;
mod unproven;
mod value;
mod wait_queue;
mod without_resp3;

pub(crate) use credentials::{load, rotating};
pub(crate) use rights::RIGHTS;

/// Returns all text that an error shows.
fn describe(error: &lockattr::Error) -> String {
    let mut text = format!("{error} {error:?}");
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        text.push_str(&format!(" {error} {error:?}"));
        source = error.source();
    }
    text
}
