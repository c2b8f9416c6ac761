//! At each heartbeat an open connection logs in with what the provider says now.

use std::time::Duration;

use lockattr::store::{Credentials, RedisStore, ServerOptions, redis};
use lockattr::{LockManager, LockOptions};
use lockattr_tests::{
    Cli, Fault, HUNG, Proxy, RedisServer, Rotating, assert_nothing_left, eventually,
};

use super::{rotating, set_password};
use crate::redis::own_client::manager;

const RIGHTS: &str = "~* &* +@all";

/// The id and the user of each connection but the harness' own.
pub(super) async fn clients(cli: &Cli) -> Vec<(String, String)> {
    let list: String = cli.query(&["CLIENT", "LIST"]).await;
    let field = |line: &str, name: &str| -> String {
        line.split(' ').find_map(|word| word.strip_prefix(name)).unwrap_or_default().to_owned()
    };
    let others = list.lines().filter(|line| field(line, "name=") != "harness");
    others.map(|line| (field(line, "id="), field(line, "user="))).collect()
}

pub(super) async fn cycle(manager: &LockManager) {
    manager.acquire("a", LockOptions::new()).await.unwrap().release().await.unwrap();
}

pub(super) async fn two_users() -> RedisServer {
    RedisServer::builder()
        .user("one", "s3cret-1", RIGHTS)
        .user("two", "s3cret-2", RIGHTS)
        .start()
        .await
}

/// A server that takes long to answer keeps its connection.
pub(super) fn often_asked() -> ServerOptions {
    let patient = ServerOptions::new().connect_timeout(HUNG).response_timeout(HUNG);
    patient.heartbeat(Duration::from_millis(50))
}

fn options(rotating: &Rotating) -> ServerOptions {
    often_asked().credentials(rotating.provider())
}

/// Services close a connection whose token is too old, unless it logs in again.
///
/// Red without: `renew_login` in `heartbeat.rs`.
#[tokio::test]
async fn an_open_connection_is_replaced_when_the_answer_changes() {
    let server = two_users().await;
    let (cli, rotating) = (server.cli().await, rotating("one", "s3cret-1"));
    let client = redis::Client::open(server.url()).unwrap();
    let manager = manager(RedisStore::from_client(client, options(&rotating).connections(2)));
    let keys: Vec<_> = (0..20).map(|key| format!("{key}")).collect();
    let cycles = async || {
        for key in &keys {
            manager.acquire(key, LockOptions::new()).await.unwrap().release().await.unwrap();
        }
    };
    cycles().await;
    let before = clients(&cli).await;
    assert!(before.len() == 2 && before.iter().all(|(_, user)| user == "one"), "{before:?}");
    rotating.set(Credentials::new("two", "s3cret-2")).await;
    eventually("all have logged in as `two`", async || {
        cycles().await;
        let now = clients(&cli).await;
        now.len() == 2 && now.iter().all(|(_, user)| user == "two")
    })
    .await;
    // Only once for each answer.
    cli.reset_stats().await;
    eventually("some heartbeats", async || {
        cli.commandstats().await.get("ping").is_some_and(|pings| *pings > 5)
    })
    .await;
    assert_eq!(cli.commandstats().await.get("auth"), None);
    drop(manager);
    assert_nothing_left(&server).await;
}

/// The provider may know a password before its server does.
#[tokio::test]
async fn a_login_that_is_refused_costs_no_connection() {
    let server = two_users().await;
    let (cli, rotating) = (server.cli().await, rotating("one", "s3cret-1"));
    let client = redis::Client::open(server.url()).unwrap();
    let manager = manager(RedisStore::from_client(client, options(&rotating)));
    cycle(&manager).await;
    let before = clients(&cli).await;
    rotating.set(Credentials::new("two", "s3cret-3")).await;
    cli.reset_stats().await;
    eventually("some logins were refused", async || {
        cycle(&manager).await;
        cli.commandstats().await.get("auth").is_some_and(|logins| *logins > 2)
    })
    .await;
    // The connection of a refused login may not have ended yet.
    eventually("the same connection", async || before == clients(&cli).await).await;
    set_password(&cli, "two", "s3cret-3").await;
    eventually("it has logged in", async || {
        cycle(&manager).await;
        clients(&cli).await.iter().all(|(_, user)| user == "two")
    })
    .await;
}

/// A connection that is subscribed without RESP3 cannot log in again, so it is made anew.
#[tokio::test]
async fn without_resp3_both_connections_are_replaced() {
    let server = two_users().await;
    let proxy = Proxy::start(server.addr()).await;
    let unknown = "ERR unknown command `HELLO`, with args beginning with: `3`";
    proxy.always("hello", Fault::Answer(unknown.into()));
    let (cli, rotating) = (server.cli().await, rotating("one", "s3cret-1"));
    let client = redis::Client::open(server.url_through(&proxy)).unwrap();
    let manager = manager(RedisStore::from_client(client, options(&rotating)));
    cycle(&manager).await;
    let before = clients(&cli).await;
    assert!(before.len() == 2 && before.iter().all(|(_, user)| user == "one"), "{before:?}");
    rotating.set(Credentials::new("two", "s3cret-2")).await;
    eventually("both are those of `two`", async || {
        cycle(&manager).await;
        let now = clients(&cli).await;
        now.len() == 2 && now.iter().all(|(_, user)| user == "two")
    })
    .await;
}
