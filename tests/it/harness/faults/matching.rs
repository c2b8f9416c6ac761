//! Tests of matching requests to rules: order, names, pipelines, pushes and long values.

use std::time::Duration;

use lockattr::{LockManager, LockOptions};
use lockattr_tests::{Fault, assert_nothing_left, with_query};

use super::{QUIET, Raw, Setup, incr, setup};

#[tokio::test]
async fn rules_come_in_order_on_whatever_connection_until_all_passes() {
    let setup = setup().await;
    let answer = |text: &str| Fault::Answer(text.to_owned());
    setup.proxy.always("incr", answer("ALWAYS"));
    setup.proxy.next("incr", answer("FIRST"));
    setup.proxy.next("incr", answer("SECOND"));
    let (mut one, mut other) = (setup.raw().await, setup.raw().await);
    one.send("INCR counter\r\nPING\r\n").await;
    one.expect_reply("-FIRST\r\n+PONG\r\n").await;
    other.send("INCR counter\r\nINCR counter\r\n").await;
    other.expect_reply("-SECOND\r\n-ALWAYS\r\n").await;
    one.send("INCR counter\r\n").await;
    one.expect_reply("-ALWAYS\r\n").await;
    setup.proxy.next("incr", answer("THIRD"));
    setup.proxy.pass();
    one.send("INCR counter\r\n").await;
    one.expect_reply(":1\r\n").await;
}

#[tokio::test]
async fn what_a_request_met_when_it_came_stays_with_it() {
    let setup = setup().await;
    let mut client = setup.raw().await;
    client.send("PING\r\n").await;
    client.expect_reply("+PONG\r\n").await;
    setup.proxy.next("incr", Fault::Answer("NO".into()));
    setup.proxy.freeze();
    client.send("INCR counter\r\nINCR counter\r\n").await;
    setup.seen(2).await;
    client.expect_silence().await;
    setup.proxy.pass();
    client.expect_reply("-NO\r\n:1\r\n").await;
}

/// Sends three commands in one piece and reads the reply to the first. The second meets the fault.
async fn in_a_pipeline(fault: Fault) -> (Setup, Raw) {
    let setup = setup().await;
    let mut client = setup.raw().await;
    setup.proxy.next("incrby", fault);
    client.send("INCR counter\r\nINCRBY counter 10\r\nINCR counter\r\n").await;
    client.expect_reply(":1\r\n").await;
    (setup, client)
}

#[tokio::test]
async fn in_a_pipeline_what_came_before_a_fault_is_answered() {
    let (setup, mut client) = in_a_pipeline(Fault::Answer("NO".into())).await;
    client.expect_reply("-NO\r\n:2\r\n").await;
    assert_eq!(setup.proxy.log(), ["incr", "incrby", "incr"]);

    let (setup, mut client) = in_a_pipeline(Fault::HoldRequest).await;
    client.expect_silence().await;
    assert_eq!(setup.counter().await.as_deref(), Some("1"));
    setup.proxy.pass();
    client.expect_reply(":11\r\n:12\r\n").await;

    let (setup, mut client) = in_a_pipeline(Fault::HoldReply).await;
    setup.counted("12").await;
    client.expect_silence().await;
    setup.proxy.pass();
    client.expect_reply(":11\r\n:12\r\n").await;
}

#[tokio::test]
async fn in_a_pipeline_what_came_behind_a_hole_is_lost() {
    let (setup, mut client) = in_a_pipeline(Fault::SwallowRequest).await;
    client.expect_silence().await;
    assert_eq!(setup.counter().await.as_deref(), Some("1"));

    let (setup, mut client) = in_a_pipeline(Fault::SwallowReply).await;
    setup.counted("12").await;
    client.expect_silence().await;

    let (setup, mut client) = in_a_pipeline(Fault::HalfOpen).await;
    setup.server_has_no_clients().await;
    client.expect_silence().await;
    assert_eq!(setup.counter().await.as_deref(), Some("1"));
}

#[tokio::test]
async fn half_open_the_server_first_answers_what_came_before() {
    let setup = setup().await;
    let mut client = setup.raw().await;
    setup.proxy.next("incr", Fault::HalfOpen);
    client.send("BLPOP list 0\r\nINCR counter\r\n").await;
    client.expect_silence().await;
    setup.cli.query::<()>(&["RPUSH", "list", "x"]).await;
    client.expect_reply("*2\r\n$4\r\nlist\r\n$1\r\nx\r\n").await;
    setup.server_has_no_clients().await;
    client.expect_silence().await;
    assert_eq!(setup.counter().await, None);
}

#[tokio::test]
async fn in_a_pipeline_a_cut_comes_in_its_place() {
    let (setup, mut client) = in_a_pipeline(Fault::CutBefore).await;
    client.expect_end().await;
    setup.server_has_no_clients().await;
    assert_eq!(setup.counter().await.as_deref(), Some("1"));

    let (setup, mut client) = in_a_pipeline(Fault::CutAfter).await;
    client.expect_end().await;
    setup.server_has_no_clients().await;
    assert_eq!(setup.counter().await.as_deref(), Some("11"));
}

#[tokio::test]
async fn our_scripts_go_by_their_names() {
    let setup = setup().await;
    let url = with_query(&setup.server.url_through(&setup.proxy), "connections=1&heartbeat=1h");
    let manager = LockManager::connect(&url).await.unwrap();
    assert!(setup.proxy.log().contains(&"script".to_owned()), "{:?}", setup.proxy.log());
    setup.proxy.clear_log();
    let guard = manager.acquire("a", LockOptions::new()).await.unwrap();
    guard.extend(Duration::from_secs(3_600)).await.unwrap();
    manager.holder("a").await.unwrap().unwrap();
    guard.release().await.unwrap();
    // From the second time on, acquire and release are plain commands.
    manager.acquire("a", LockOptions::new()).await.unwrap().release().await.unwrap();
    let log = setup.proxy.log();
    assert_eq!(log, ["acquire", "renew", "holder", "release", "acquire", "count", "release"]);
    setup.proxy.clear_log();
    assert_eq!(setup.proxy.log(), [""; 0]);
    assert_eq!((setup.proxy.seen("acquire"), setup.proxy.answered("acquire")), (2, 2));

    let mut connection = setup.connect().await;
    let holder = concat!(
        include_str!("../../../../lockattr/src/engines/redis/head.lua"),
        include_str!("../../../../lockattr/src/engines/redis/count.lua"),
        include_str!("../../../../lockattr/src/engines/redis/publish.lua"),
        include_str!("../../../../lockattr/src/engines/redis/lock.lua"),
        include_str!("../../../../lockattr/src/engines/redis/holders.lua"),
        include_str!("../../../../lockattr/src/engines/redis/holder.lua"),
    );
    setup.proxy.clear_log();
    for (command, script) in [("EVAL", holder), ("eval", "return false"), ("EVALSHA", "0")] {
        let script = redis::cmd(command).arg(script).arg(1).arg("a").clone();
        script.query_async::<Option<u64>>(&mut connection).await.ok();
    }
    assert_eq!(setup.proxy.log(), ["holder", "eval", "evalsha"]);
    assert_nothing_left(&setup.server).await;
}

/// Returns a client that has switched to RESP3 with `HELLO`.
async fn pushed_to(setup: &Setup) -> Raw {
    let mut client = setup.raw().await;
    client.send("HELLO 3\r\n").await;
    // The last field of the reply is the list of modules, which is empty.
    client.expect_until("*0\r\n").await;
    client
}

fn push(kind: &str, channel: &str, rest: &str) -> String {
    format!(">3\r\n${}\r\n{kind}\r\n$1\r\n{channel}\r\n{rest}\r\n", kind.len())
}

#[tokio::test]
async fn what_the_server_pushes_is_no_ones_reply() {
    let setup = setup().await;
    let mut client = pushed_to(&setup).await;
    setup.proxy.next("blpop", Fault::HoldReply);
    client.send("SUBSCRIBE a\r\nBLPOP list 0\r\n").await;
    client.expect_reply(&push("subscribe", "a", ":1")).await;
    setup.cli.query::<()>(&["PUBLISH", "a", "hi"]).await;
    client.expect_reply(&push("message", "a", "$2\r\nhi")).await;
    assert_eq!((setup.proxy.seen("blpop"), setup.proxy.answered("blpop")), (1, 0));
    setup.cli.query::<()>(&["RPUSH", "list", "x"]).await;
    client.expect_silence().await;
    setup.proxy.pass();
    client.expect_reply("*2\r\n$4\r\nlist\r\n$1\r\nx\r\n").await;
    assert_eq!(setup.proxy.answered("blpop"), 1);
}

#[tokio::test]
async fn a_subscription_is_answered_by_a_push_for_each_channel() {
    let setup = setup().await;
    let mut client = pushed_to(&setup).await;
    setup.proxy.next("subscribe", Fault::Delay(QUIET));
    setup.proxy.next("subscribe", Fault::HoldReply);
    client.send("SUBSCRIBE a b\r\nSUBSCRIBE c\r\nPING\r\n").await;
    client.expect_reply(&(push("subscribe", "a", ":1") + &push("subscribe", "b", ":2"))).await;
    client.expect_silence().await;
    assert_eq!((setup.proxy.answered("subscribe"), setup.proxy.answered("ping")), (1, 0));
    setup.proxy.pass();
    client.expect_reply(&(push("subscribe", "c", ":3") + "+PONG\r\n")).await;

    setup.cli.query::<()>(&["ACL", "SETUSER", "default", "resetchannels", "&a"]).await;
    let mut client = pushed_to(&setup).await;
    setup.proxy.next("get", Fault::SwallowReply);
    client.send("SUBSCRIBE a b\r\nUNSUBSCRIBE\r\nPING\r\nGET a\r\n").await;
    client.expect_until("-NOPERM ").await;
    client.expect_until("+PONG\r\n").await;
    client.expect_silence().await;
    assert_eq!((setup.proxy.answered("ping"), setup.proxy.answered("get")), (2, 0));
}

#[tokio::test]
async fn a_long_value_is_one_request_and_one_reply() {
    let setup = setup().await;
    let mut connection = setup.connect().await;
    let long = "x\r\n*3$-".repeat(150_000);
    setup.proxy.clear_log();
    let (_, back): ((), String) = redis::pipe()
        .cmd("SET")
        .arg("long")
        .arg(&long)
        .cmd("GET")
        .arg("long")
        .query_async(&mut connection)
        .await
        .unwrap();
    assert!(back == long);
    assert_eq!(setup.proxy.log(), ["set", "get"]);
    assert_eq!((setup.proxy.answered("set"), setup.proxy.answered("get")), (1, 1));
    assert_eq!(incr(&mut connection).await, Ok(1));
}

#[tokio::test]
async fn an_empty_line_is_no_request() {
    let setup = setup().await;
    let mut client = setup.raw().await;
    client.send("\r\n*0\r\nPING\r\n").await;
    client.expect_reply("+PONG\r\n").await;
    assert_eq!(setup.proxy.log(), ["ping"]);
    assert_eq!(setup.proxy.answered("ping"), 1);
}
