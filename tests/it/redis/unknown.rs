//! Unknown is neither lost nor refused: the request, the reply or the connection of one command is
//! taken away, by name and one at a time.

mod acquire;
mod release;
mod renew;

use std::time::Duration;

use lockattr::{LockGuard, LockManager, LockOptions};
use lockattr_tests::{Cli, Fault, Proxy, RedisServer, assert_nothing_left, eventually, with_query};

const SECOND: Duration = Duration::from_secs(1);

/// A manager that reaches its server through a network with faults on request. Its leases are longer than any
/// test: a lock that is gone was released, and did not expire.
struct World {
    server: RedisServer,
    cli: Cli,
    proxy: Proxy,
    manager: LockManager,
}

impl World {
    /// For faults that need no timeout.
    async fn new() -> Self {
        Self::with("heartbeat=1h").await
    }

    /// For faults that end a reply for good. A request may fail without a fault, because the machine is busy.
    async fn quick() -> Self {
        Self::with("response_timeout=500ms&connect_timeout=1s&heartbeat=500ms").await
    }

    /// The same, and a lock that was acquired by the first request, so that no release is sent but of its guard.
    async fn holding(options: LockOptions) -> (Self, LockGuard) {
        loop {
            let world = Self::quick().await;
            let guard = world.manager.acquire("a", options.clone()).await.unwrap();
            if world.proxy.seen("acquire") == 1 && world.proxy.seen("release") == 0 {
                break (world, guard);
            }
        }
    }

    /// One connection, so that its faults affect every command.
    async fn with(settings: &str) -> Self {
        let server = RedisServer::start().await;
        let proxy = Proxy::start(server.addr()).await;
        let url = with_query(&server.url_through(&proxy), &format!("connections=1&{settings}"));
        let manager = LockManager::builder().url(url).build().unwrap();
        let connected = async || manager.holder("a").await.is_ok();
        eventually("it is connected", connected).await;
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
        let next = self.another().await.acquire("a", LockOptions::new()).await;
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
