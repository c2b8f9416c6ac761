//! What a lock is for: the counter and the set that it guards, with a resource that compares fencing
//! tokens, and with one that believes everyone.

use lockattr_history::Wrong;
use lockattr_tests::RedisServer;

use super::stage::{OURS, Stage};

/// The first reads, and stands still past its lease; the second adds; the first goes on and writes
/// what it has read, and one more. Of the lock itself nothing is wrong: whose fault it is shows in
/// the ledger only.
async fn paused_between_reading_and_writing(fenced: bool) -> (String, Vec<Wrong>) {
    let server = RedisServer::start().await;
    let mut stage = Stage::with_ledger(OURS, vec![server.addr()], fenced);
    let (first, second) = (stage.enters(), stage.enters());
    stage.gets(first, "acquire").await;
    stage.gets(first, "read").await;
    stage.sleeps_past_its_lease(first, &server).await;
    for order in ["acquire", "read", "write", "release"] {
        stage.gets(second, order).await;
    }
    stage.wakes(first);
    let told = stage.order(first, "write").await;
    assert_eq!(stage.order(first, "release").await, "no", "it was told of the loss");
    let wrong = stage.audited();
    assert_eq!(stage.reports(&server).await, [""; 0]);
    (told, wrong)
}

#[tokio::test]
async fn a_resource_that_compares_tokens_loses_nothing_to_a_pause() {
    let (told, wrong) = paused_between_reading_and_writing(true).await;
    assert_eq!((told.as_str(), wrong), ("no", Vec::new()));
}

#[tokio::test]
async fn a_resource_that_believes_everyone_loses_an_update_to_a_pause_and_the_audit_says_whose() {
    let (told, wrong) = paused_between_reading_and_writing(false).await;
    assert_eq!(told, "yes");
    let [Wrong::Gone { lost, by }, Wrong::Count { count: 1, acknowledged: 2 }] = &wrong[..] else {
        panic!("{wrong:?}");
    };
    assert_eq!(lost.process, 1);
    assert_eq!(by.iter().map(|late| late.process).collect::<Vec<_>>(), [0]);
}

/// Red without: one key for all (the checker finds two holders).
#[tokio::test]
async fn without_a_pause_nothing_is_lost_by_either() {
    for fenced in [true, false] {
        let server = RedisServer::start().await;
        let mut stage = Stage::with_ledger(OURS, vec![server.addr()], fenced);
        let clients = [(); 3].map(|()| stage.enters());
        for client in clients {
            stage.tell(client, "add 30").await;
        }
        for client in clients {
            assert_eq!(stage.answers(client).await, "yes");
        }
        assert_eq!(stage.audited(), []);
        assert_eq!(stage.reports(&server).await, [""; 0]);
    }
}
