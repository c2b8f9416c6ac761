//! A server whose commits wait for a standby.

use lockattr::Error;
use lockattr_tests::Engine;

use super::*;
use crate::support::connected;

/// The grant is committed here and waits for the standby. Ending its session would make it visible
/// at once, but a failover would lose it.
#[tokio::test]
async fn a_session_that_waits_for_the_standby_is_not_terminated() {
    let server = PostgresServer::start().await;
    let url = server.url_with("connections=1&response_timeout=1s&heartbeat=1h");
    let manager = connected(&url).await;
    eventually("nothing is left", async || server.left().await.is_empty()).await;
    server.run("alter system set synchronous_standby_names = 'nobody'").await;
    let settings = "select pg_reload_conf() is not null";
    let client = server.client().await;
    client.batch_execute("set synchronous_commit = local").await.unwrap();
    client.query_one(settings, &[]).await.unwrap();
    let commits = server.client().await;
    let commit = "select pg_logical_emit_message(true, 'test', '')";
    let commits = tokio::spawn(async move { while commits.simple_query(commit).await.is_ok() {} });
    let count = "select count(*) from pg_stat_activity where wait_event = $1";
    let those =
        async |event: &str| -> i64 { client.query_one(count, &[&event]).await.unwrap().get(0) };
    eventually("commits wait", async || those("SyncRep").await == 1).await;
    let end = "select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'";
    client.batch_execute(end).await.unwrap();
    commits.await.unwrap();
    eventually("none waits", async || those("SyncRep").await == 0).await;
    let refused = manager.try_acquire("a", LockOptions::new()).await;
    assert!(matches!(refused, Err(Error::Store { .. })), "{refused:?}");
    eventually("it waits for the standby", async || those("SyncRep").await == 1).await;
    eventually("the next one waits for it", async || those("advisory").await == 1).await;
    assert_eq!(those("SyncRep").await, 1, "its wait was cut short");
    assert_eq!(server.left().await, Vec::<String>::new(), "an outage is reported");
    client.batch_execute("alter system reset synchronous_standby_names").await.unwrap();
    client.query_one(settings, &[]).await.unwrap();
    eventually("released", async || server.left().await.is_empty()).await;
    let again = async || matches!(manager.try_acquire("a", LockOptions::new()).await, Ok(Some(_)));
    eventually("it is free", again).await;
    eventually("nothing is left", async || server.left().await.is_empty()).await;
}
