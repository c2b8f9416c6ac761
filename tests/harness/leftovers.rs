//! The checks at the end of nearly every test: nothing of ours stays in the store.

use std::time::Duration;

use crate::eventually::Patience;
use crate::{Cli, RedisServer, Servers};

/// Releases of dropped guards go out a little later; this is how much later they may be.
const LIMIT: Duration = Duration::from_secs(2);

/// Waits for the server, or for each of several, to hold nothing but the fencing counter (a key
/// whose name contains `fence`). Those that are down or stand still are left out.
///
/// # Panics
///
/// When something else is still there after two seconds, naming each key with its value.
pub async fn assert_nothing_left(servers: &impl Servers) {
    assert_nothing_left_within(servers, LIMIT).await;
}

/// [`assert_nothing_left`], for what takes longer: releases that a fault has held up.
///
/// # Panics
///
/// When something else is still there after `limit`, naming each key with its value.
pub async fn assert_nothing_left_within(servers: &impl Servers, limit: Duration) {
    let mut patience = Patience::new(limit);
    for server in up(servers) {
        let cli = server.cli().await;
        let left = loop {
            let left = left_on(&cli).await;
            if left.is_empty() || !patience.pause().await {
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

/// Waits for the server, or for each of several, to have no subscriber any more: for the end of a
/// test whose managers are gone.
///
/// # Panics
///
/// When somebody still listens after two seconds, naming the channels.
pub async fn assert_nobody_listens(servers: &impl Servers) {
    let mut patience = Patience::new(LIMIT);
    for server in up(servers) {
        let cli = server.cli().await;
        loop {
            let channels = channels_of(&cli).await;
            if channels.is_empty() {
                break;
            }
            let waited = patience.pause().await;
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
    // By this one sentinels find each other.
    channels.retain(|channel| channel != "__sentinel__:hello");
    channels.extend(cli.query::<Vec<String>>(&["PUBSUB", "SHARDCHANNELS"]).await);
    if cli.query::<usize>(&["PUBSUB", "NUMPAT"]).await > 0 {
        channels.push("patterns".to_owned());
    }
    channels
}
