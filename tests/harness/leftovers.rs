//! The check at the end of nearly every test: nothing of ours stays in the store.

use std::time::Duration;

use crate::RedisServer;
use crate::eventually::Patience;

/// Releases of dropped guards go out a little later; this is how much later they may be.
const LIMIT: Duration = Duration::from_secs(2);

/// Waits for the server to hold nothing but the fencing counter (a key whose name contains
/// `fence`).
///
/// # Panics
///
/// When something else is still there after two seconds, naming each key with its value.
pub async fn assert_nothing_left(server: &RedisServer) {
    assert_nothing_left_within(server, LIMIT).await;
}

/// [`assert_nothing_left`], for what takes longer: releases that a fault has held up.
///
/// # Panics
///
/// When something else is still there after `limit`, naming each key with its value.
pub async fn assert_nothing_left_within(server: &RedisServer, limit: Duration) {
    let cli = server.cli().await;
    let mut patience = Patience::new(limit);
    let left = loop {
        let mut left = cli.keys("*").await;
        left.retain(|key| !key.contains("fence"));
        if left.is_empty() {
            return;
        }
        if !patience.pause().await {
            break left;
        }
    };
    let mut lines = String::new();
    for key in left {
        let value = cli.describe(&key).await;
        lines.push_str(&format!("\n  {key} = {value}"));
    }
    panic!("left in the store after {limit:?}:{lines}");
}
