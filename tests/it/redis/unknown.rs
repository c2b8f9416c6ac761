//! Unknown is neither lost nor refused: the request, the reply or the connection of one command is
//! taken away, by name and one at a time.

mod acquire;
mod release;
mod renew;

use std::time::Duration;

use lockattr::{LockManager, LockOptions};
use lockattr_tests::{Cli, Fault, Proxy, RedisServer, assert_nothing_left, in_time, with_query};
use tokio::task::yield_now;

const SECOND: Duration = Duration::from_secs(1);

/// The limit for everything here: a hang is a failure, not a slow test.
const LIMIT: Duration = Duration::from_secs(20);

/// Longer than any test: a lock that is gone was released, and did not expire.
const LONG: Duration = Duration::from_secs(60);

/// A manager that reaches its server through a network with faults on request.
struct World {
    server: RedisServer,
    cli: Cli,
    proxy: Proxy,
    manager: LockManager,
}

impl World {
    /// One connection, so that its faults affect every command.
    async fn new() -> Self {
        Self::with("response_timeout=200ms&connect_timeout=2s&heartbeat=300ms").await
    }

    async fn with(settings: &str) -> Self {
        let server = RedisServer::start().await;
        let proxy = Proxy::start(server.addr()).await;
        let url = with_query(&server.url_through(&proxy), &format!("connections=1&{settings}"));
        // The tests' timeouts may be too short to connect on a busy machine.
        let connect = async {
            loop {
                match LockManager::connect(&url).await {
                    Ok(manager) => break manager,
                    Err(_) => yield_now().await,
                }
            }
        };
        let manager = in_time(connect).await;
        let cli = server.cli().await;
        Self { server, cli, proxy, manager }
    }

    /// A manager that stands for another process: not through the proxy.
    async fn another(&self) -> LockManager {
        LockManager::connect(&self.server.url()).await.unwrap()
    }

    /// The holder, as the store has it.
    async fn value(&self) -> Option<String> {
        self.cli.value("lock:a").await
    }

    /// Asserts that after the fault the next caller gets in, and that nothing is left then.
    async fn ends_well(self) {
        self.proxy.pass();
        let next = self.another().await.acquire("a", LockOptions::new().wait(LIMIT)).await;
        next.expect("the next caller gets in").release().await.unwrap();
        assert_nothing_left(&self.server).await;
    }
}

/// What a network and a server may do to one command. `true` if the command takes effect.
fn faults() -> Vec<(Fault, bool)> {
    vec![
        (Fault::SwallowRequest, false),
        (Fault::SwallowReply, true),
        (Fault::HoldReply, true),
        (Fault::CutBefore, false),
        (Fault::CutAfter, true),
        (Fault::HalfOpen, false),
        (Fault::Answer("LOADING Redis is loading the dataset in memory".into()), false),
        (Fault::Answer("BUSY Redis is busy running a script".into()), false),
        (Fault::Answer("ERR something new".into()), false),
    ]
}
