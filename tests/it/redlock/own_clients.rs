//! A quorum of the program's own Redis clients.

use std::sync::Arc;
use std::time::Duration;

use lockattr::store::{Credentials, RedlockOptions, RedlockStore, ServerOptions, redis};
use lockattr::{Error, LockManager, LockOptions};
use lockattr_tests::{HUNG, Independents, RedisServer, assert_nothing_left, eventually};

use crate::redis::{load, rotating};

/// No request ends because the machine is busy.
fn patient() -> ServerOptions {
    ServerOptions::new().connect_timeout(HUNG).response_timeout(HUNG)
}

/// The servers have just started; without this they would wait out what a restart may have lost.
fn old() -> RedlockOptions {
    RedlockOptions::new().durable(true).server(patient())
}

fn clients(servers: &Independents) -> Vec<redis::Client> {
    let open = |node: &RedisServer| redis::Client::open(node.url()).unwrap();
    servers.nodes().iter().map(open).collect()
}

fn manager(store: Result<RedlockStore, Error>) -> LockManager {
    LockManager::builder().store(Arc::new(store.unwrap())).wait(HUNG).build().unwrap()
}

#[tokio::test]
async fn clients_make_a_quorum_that_excludes_the_one_of_a_url() {
    let servers = RedisServer::builder().password("s3cret");
    let servers = Independents::builder().count(3).servers(servers).start().await;
    let ours = manager(RedlockStore::from_clients(clients(&servers), old()));
    assert!(!format!("{ours:?}").contains("s3cret"), "{ours:?}");
    let other = LockManager::connect(&servers.url_with("durable=true")).await.unwrap();
    let held = ours.acquire("a", LockOptions::new()).await.unwrap();
    assert!(other.try_acquire("a", LockOptions::new()).await.unwrap().is_none(), "held twice");
    held.release().await.unwrap();
    servers.kill(0);
    ours.acquire("a", LockOptions::new()).await.unwrap().release().await.unwrap();
    assert_nothing_left(&servers).await;
}

/// Red without: `forgets` in `RedlockStore::from_clients`.
#[tokio::test]
async fn servers_that_may_have_forgotten_grant_nothing_yet() {
    let servers = Independents::start(3).await;
    let ours = manager(RedlockStore::from_clients(clients(&servers), patient()));
    let refused = ours.acquire("a", LockOptions::new().retry(0)).await.unwrap_err();
    assert!(refused.to_string().contains("request to the store"), "{refused}");
    let Error::Store { source, .. } = &refused else { panic!("{refused:?}") };
    assert!(source.to_string().contains("was restarted, and grants no locks"), "{source}");

    let short = RedlockOptions::new().max_ttl(Duration::from_secs(30));
    let short = manager(RedlockStore::from_clients(clients(&servers), short));
    let options = LockOptions::new().ttl(Duration::from_secs(31));
    let refused = short.acquire("a", options).await.unwrap_err();
    assert!(matches!(&refused, Error::InvalidOptions(why) if why.contains("30s")), "{refused:?}");
}

/// Red without: the members of `RedlockStore::from_clients`.
#[tokio::test]
async fn two_clients_of_one_server_are_refused() {
    let servers = Independents::start(2).await;
    let [one, other] = [0, 1].map(|nth| servers.node(nth).url());
    let open = |urls: [&str; 3]| {
        let clients = urls.map(|url| redis::Client::open(url).unwrap());
        RedlockStore::from_clients(clients, old())
    };
    let error = open([&one, &other, &one]).unwrap_err();
    assert!(error.to_string().contains("two clients have the same address"), "{error}");
    let again = one.replace("127.0.0.1", "localhost");
    let manager = LockManager::builder().store(Arc::new(open([&one, &again, &other]).unwrap()));
    let error = manager.connect().await.unwrap_err();
    assert!(error.to_string().contains("names a server twice"), "{error}");
    let few = [redis::Client::open(one.as_str()).unwrap()];
    let error = RedlockStore::from_clients(few, old()).unwrap_err();
    assert!(error.to_string().contains("3 to 63 servers, not 1"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_acquisition_fails_while_the_passwords_of_a_quorum_rotate() {
    let user = RedisServer::builder().user("locks", "s3cret-0", "~* &* +@all");
    let servers = Independents::builder().count(3).servers(user).start().await;
    let rotating = rotating("locks", "s3cret-0");
    let options = old().server(patient().credentials(rotating.provider()));
    let store = Arc::new(RedlockStore::from_clients(clients(&servers), options).unwrap());
    // Short: what a connection that was cut leaves on one server, stays there until the lease ends.
    let short = LockManager::builder().store(store).wait(HUNG).ttl(Duration::from_secs(3));
    let manager = short.build().unwrap();
    let load = load(&manager, 4);
    for round in 1..=5 {
        load.goes_on(25).await;
        let password = format!("s3cret-{round}");
        rotating.set(Credentials::new("locks", &password)).await;
        for node in servers.nodes() {
            let cli = node.cli().await;
            let login = format!(">{password}");
            let () = cli.query(&["ACL", "SETUSER", "locks", "resetpass", &login]).await;
            let cut: usize = cli.query(&["CLIENT", "KILL", "USER", "locks"]).await;
            assert!(cut > 0);
        }
    }
    load.goes_on(25).await;
    let acquired = load.stop().await.expect("no acquisition fails").acquired;
    assert!(acquired >= 600, "{acquired}");
    // A majority has released each lock. What was cut on the way to another ends with its lease.
    let none_held = async || manager.held_locks().await.is_ok_and(|held| held.is_empty());
    eventually("no lock is held", none_held).await;
    drop(manager);
    // The key of a lock with waiters is kept for half a minute after them.
    assert_nothing_left(&servers).await;
}
