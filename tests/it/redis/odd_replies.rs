//! A reply that cannot be one to its request: the connection that carried it is given up, because its next
//! replies may be those of other requests.

use lockattr::{HolderId, LockManager, LockOptions};
use lockattr_tests::{Cli, RedisServer, Wires, in_time};

async fn connection(cli: &Cli) -> String {
    let clients = cli.query::<String>(&["CLIENT", "LIST", "TYPE", "PUBSUB"]).await;
    clients.split(' ').next().unwrap_or_default().to_owned()
}

/// Red without: `distrusted`, or a call of it.
#[tokio::test]
async fn a_connection_with_a_reply_that_is_no_answer_is_not_used_again() {
    let server = RedisServer::start().await;
    let (wires, cli) = (Wires::before(&server).await, server.cli().await);
    let manager = LockManager::connect(wires.url_with("heartbeat=1h")).await.unwrap();
    let lock = async || manager.acquire("a", LockOptions::new()).await;
    // The next acquisition needs no script.
    lock().await.unwrap().release().await.unwrap();
    for request in ["a pair", "a release", "a script", "a query"] {
        let held = match request {
            "a release" => Some(lock().await.unwrap()),
            _ => None,
        };
        let before = connection(&cli).await;
        assert!(before.starts_with("id="), "{before}");
        for wire in wires.each() {
            let mut is_next = true;
            wire.mutate(move |bytes| {
                if std::mem::take(&mut is_next) {
                    let pair = bytes.starts_with(b"+OK\r\n");
                    *bytes = b"$1\r\nx\r\n".repeat(1 + usize::from(pair));
                }
            });
        }
        match request {
            "a release" => drop(in_time(held.expect("held").release()).await),
            "a query" => drop(in_time(manager.holder("a")).await.unwrap_err()),
            "a script" => {
                let forced = manager.force_release("a", HolderId::default());
                drop(in_time(forced).await.unwrap_err());
            }
            _ => drop(in_time(lock()).await),
        }
        wires.pass().await;
        in_time(lock()).await.unwrap().release().await.unwrap();
        assert_ne!(connection(&cli).await, before, "{request}");
    }
}
