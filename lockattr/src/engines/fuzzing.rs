//! Entry points for the fuzzers of `fuzz/`: where replies of servers are read, and keys are built.
//! In no other build.

#![allow(missing_docs, reason = "each function is named after the parser that it fuzzes")]

use std::time::Duration;

use crate::Error;
use crate::lock::key_template::KeyBuilder;

pub use super::etcd::fuzzed as etcd;
pub use super::mysql::fuzzed as mysql;
pub use super::postgres::fuzzed as postgres;
pub use super::redis::fuzzed as redis;
pub use super::zookeeper::fuzzed as zookeeper;

pub fn finished(key: KeyBuilder) -> Option<String> {
    key.finish().map(Into::into)
}

/// Reads a duration as a URL has it.
pub fn duration(text: &str) -> Result<Duration, Error> {
    crate::lock::settings::duration("ttl", text)
}
