//! Opening connections, on every engine: names, slow links, and what an error says.

mod names;
mod resolver;

use std::net::TcpListener;
use std::sync::mpsc;
use std::time::Duration;

use futures_util::future::join_all;
use lockattr::{Error, LockManager, LockOptions};
use lockattr_tests::{Engine, Wires, bare, in_time, patient, with_query};
use tokio::runtime::Builder;

/// Runs every test on each engine.
macro_rules! connecting {
    ($($name:ident: $engine:ty),* $(,)?) => {
        $(mod $name {
            use lockattr_tests::Engine;

            type Server = $engine;

            #[test]
            fn a_name_is_looked_up_while_all_threads_for_blocking_work_are_taken() {
                super::a_name_is_looked_up_while_all_threads_for_blocking_work_are_taken::<Server>();
            }

            #[tokio::test]
            async fn a_link_with_a_round_trip_of_a_quarter_of_a_second_connects() {
                let server = <Server as Engine>::start().await;
                super::a_link_with_a_round_trip_of_a_quarter_of_a_second_connects(&server).await;
            }

            #[tokio::test]
            async fn an_error_names_the_address_that_refused() {
                let server = <Server as Engine>::start().await;
                super::an_error_names_the_address_that_refused(&server).await;
            }
        })*
    };
}

lockattr_tests::engines!(connecting);

/// Red without: look-ups on threads of our own. The runtime's own waits for the user's work.
fn a_name_is_looked_up_while_all_threads_for_blocking_work_are_taken<S: Engine>() {
    let servers = Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let server = servers.block_on(S::start());
    let runtime = Builder::new_current_thread().max_blocking_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let (end, work) = mpsc::channel::<()>();
    let _working = runtime.spawn_blocking(move || work.recv());
    let named: Vec<_> =
        server.addrs().iter().map(|addr| addr.replace("127.0.0.1", "localhost")).collect();
    let url = server.url_at(&named);
    runtime.block_on(in_time(async {
        let manager = LockManager::connect(&url).await.expect("connected");
        let held = manager.acquire("named", LockOptions::new()).await.expect("it is free");
        held.release().await.expect("released");
    }));
    drop(end);
}

/// Red without: a limit of its own for the login.
async fn a_link_with_a_round_trip_of_a_quarter_of_a_second_connects<S: Engine>(server: &S) {
    let wires = Wires::before(server).await;
    wires.delay(Duration::from_millis(125));
    // The library's own time for an attempt. All other times are longer than a test.
    let url = wires.url_with("connect_timeout=1s");
    let manager = in_time(LockManager::connect(&url)).await.expect("connected");
    let held = in_time(manager.acquire("far", LockOptions::new())).await.expect("it is free");
    in_time(held.release()).await.expect("released");
}

/// Red without: the address in the error.
async fn an_error_names_the_address_that_refused<S: Engine>(server: &S) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    drop(listener);
    let url = bare(&server.url_at(&vec![format!("localhost:{port}"); server.addrs().len()]));
    let error = in_time(LockManager::connect(&url)).await.expect_err("no server is there");
    let error = error.to_string();
    assert!(error.contains(&format!("127.0.0.1:{port}")), "{error}");
    assert!(error.to_lowercase().contains("connection refused"), "{error}");
}

/// A store at this silent address, of each kind; Redlock has two more.
fn silent_stores([silent, others @ ..]: &[String; 3]) -> Vec<String> {
    let mut urls = vec![format!("redlock://{silent},{}?durable=true", others.join(","))];
    let of_one = [
        "redis://ADDR/",
        "redis+sentinel://ADDR/master",
        "redis+cluster://ADDR",
        "postgres://user@ADDR/shop",
        "postgres://user@ADDR/shop?lock=session",
        "mysql://user@ADDR/shop",
        "mysql://user@ADDR/shop?lock=session",
        "zookeeper://ADDR",
        "etcd://ADDR",
    ];
    urls.extend(of_one.map(|url| url.replace("ADDR", silent)));
    urls
}

/// The servers accept every connection, and never reply.
///
/// Red without: the place where a claim departs, after its connection, or the address in `not_sent`.
#[tokio::test]
async fn a_call_that_ends_while_its_store_connects_names_the_address_and_undoes_nothing() {
    let silent = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
    let addrs = silent.each_ref().map(|it| it.local_addr().expect("bound").to_string());
    let calls = silent_stores(&addrs).into_iter().map(async |url| {
        let url = with_query(&patient(&url), "wait=1s&shutdown_timeout=1h");
        let manager = LockManager::builder().url(&url).build().expect("a store");
        let refused = in_time(manager.acquire("a", LockOptions::new())).await.map(drop);
        let Err(error @ Error::Store { .. }) = refused else { panic!("{url}: {refused:?}") };
        let said = error.to_string();
        assert!(said.contains("was not sent to ") && said.contains(&addrs[0]), "{url}: {said}");
        // With something to undo, it would last an hour.
        in_time(manager.shutdown()).await;
    });
    join_all(calls).await;
}
