//! The counter and the set that a lock guards, kept by a resource that compares fencing tokens and
//! by one that does not.

use lockattr_history::Wrong;
use lockattr_tests::RedisServer;

use super::stage::{OURS, Stage};

/// The first process reads and is stopped past its lease, and the second adds. The first continues
/// and writes what it read plus one. The lock itself is correct: only the ledger shows the fault.
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

/// Red without: one key for all clients (the checker finds two holders).
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
