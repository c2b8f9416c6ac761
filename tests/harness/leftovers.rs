//! The checks at the end of nearly every test: lockattr has left nothing in the store.

use crate::eventually::{Backoff, HUNG};
use crate::{Cli, RedisServer, Servers};

/// Waits until each server has no keys except the fencing counter (a key whose name contains
/// `fence`). Skips servers that are down or paused.
///
/// A lock that no process released is found because its lease is longer than [`HUNG`](crate::HUNG), unless the test
/// chose a short one.
///
/// # Panics
///
/// If another key is still there after [`HUNG`](crate::HUNG), with each such key and its value.
pub async fn assert_nothing_left(servers: &impl Servers) {
    let mut backoff = Backoff::new();
    loop {
        let left = left(servers).await;
        if left.is_empty() {
            return;
        }
        let waited = backoff.pause().await;
        assert!(waited, "left in the store after {HUNG:?}:\n  {}", left.join("\n  "));
    }
}

/// Waits until no server has a subscriber any more, at the end of a test whose managers are gone.
///
/// # Panics
///
/// If there is still a subscriber after [`HUNG`](crate::HUNG), with the channels.
pub async fn assert_nobody_listens(servers: &impl Servers) {
    let mut backoff = Backoff::new();
    loop {
        let listened_to = listened_to(servers).await;
        if listened_to.is_empty() {
            return;
        }
        let waited = backoff.pause().await;
        assert!(waited, "still has subscribers after {HUNG:?}:\n  {}", listened_to.join("\n  "));
    }
}

/// Returns what [`assert_nothing_left`] waits for: a line for each key, with its server, its value and its TTL.
pub async fn left(servers: &impl Servers) -> Vec<String> {
    let mut lines = Vec::new();
    for server in up(servers) {
        let cli = server.cli().await;
        for key in left_on(&cli).await {
            lines.push(format!("{}: {key} = {}", server.addr(), cli.describe(&key).await));
        }
    }
    lines
}

/// Returns what [`assert_nobody_listens`] waits for: a line for each channel, with its server.
pub async fn listened_to(servers: &impl Servers) -> Vec<String> {
    let mut lines = Vec::new();
    for server in up(servers) {
        let channels = channels_of(&server.cli().await).await;
        lines.extend(channels.into_iter().map(|channel| format!("{}: {channel}", server.addr())));
    }
    lines
}

fn up(servers: &impl Servers) -> impl Iterator<Item = &RedisServer> {
    servers.servers().into_iter().filter(|server| server.is_up())
}

async fn left_on(cli: &Cli) -> Vec<String> {
    let mut left = cli.keys("*").await;
    left.retain(|key| !key.contains("fence"));
    left
}

async fn channels_of(cli: &Cli) -> Vec<String> {
    let mut channels: Vec<String> = cli.query(&["PUBSUB", "CHANNELS"]).await;
    // Sentinels discover each other by this channel.
    channels.retain(|channel| channel != "__sentinel__:hello");
    channels.extend(cli.query::<Vec<String>>(&["PUBSUB", "SHARDCHANNELS"]).await);
    if cli.query::<usize>(&["PUBSUB", "NUMPAT"]).await > 0 {
        channels.push("patterns".to_owned());
    }
    channels
}
