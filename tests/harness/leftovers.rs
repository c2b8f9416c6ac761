//! The checks at the end of nearly every test: lockattr has left nothing in the store.

use std::time::Duration;

use crate::eventually::Backoff;
use crate::{Cli, RedisServer, Servers};

/// How long the releases of dropped guards may take, because they are sent in the background.
const LIMIT: Duration = Duration::from_secs(2);

/// Waits until each server has no keys except the fencing counter (a key whose name contains
/// `fence`). Skips servers that are down or paused.
///
/// # Panics
///
/// If another key is still there after two seconds, with each such key and its value.
pub async fn assert_nothing_left(servers: &impl Servers) {
    assert_nothing_left_within(servers, LIMIT).await;
}

/// [`assert_nothing_left`] with another limit, for releases that a fault has delayed.
///
/// # Panics
///
/// If another key is still there after `limit`, with each such key and its value.
pub async fn assert_nothing_left_within(servers: &impl Servers, limit: Duration) {
    let mut backoff = Backoff::new(limit);
    for server in up(servers) {
        let cli = server.cli().await;
        let left = loop {
            let left = left_on(&cli).await;
            if left.is_empty() || !backoff.pause().await {
                break left;
            }
        };
        let mut lines = String::new();
        for key in left {
            let value = cli.describe(&key).await;
            lines.push_str(&format!("\n  {key} = {value}"));
        }
        assert!(lines.is_empty(), "left in the store at {} after {limit:?}:{lines}", server.addr());
    }
}

/// Waits until no server has a subscriber any more, at the end of a test whose managers are gone.
///
/// # Panics
///
/// If there is still a subscriber after two seconds, with the channels.
pub async fn assert_nobody_listens(servers: &impl Servers) {
    let mut backoff = Backoff::new(LIMIT);
    for server in up(servers) {
        let cli = server.cli().await;
        loop {
            let channels = channels_of(&cli).await;
            if channels.is_empty() {
                break;
            }
            let waited = backoff.pause().await;
            assert!(waited, "{} still has subscribers to {channels:?}", server.addr());
        }
    }
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
