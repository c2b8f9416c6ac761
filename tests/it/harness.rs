//! The tests of the test harness.

mod cluster;
mod events;
mod eventually;
mod faults;
mod independents;
mod leash;
mod node;
mod postgres_server;
mod proxy;
mod redis_server;
mod resource;
mod sentinels;
mod tls;
mod wire;

use lockattr_tests::HUNG;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisResult};

/// Connects as the library's own tests do, and not with the client's default timeout of half a second.
async fn connect(client: &Client) -> RedisResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(HUNG))
        .set_response_timeout(Some(HUNG));
    client.get_multiplexed_async_connection_with_config(&config).await
}
