//! What a lock is for: a counter that it guards, in a resource that compares fencing tokens and in one that does not.

use lockattr_history::Damage;
use lockattr_tests::RedisServer;

use super::stage::{OURS, Stage};

/// The first process reads the counter and is stopped past its lease. The second adds one. The first goes on and writes
/// what it has read, and one more. The history of the lock is right: the damage shows only in the resource.
///
/// Returns the reply to the late write, the tokens of both, and the damage.
async fn paused_between_reading_and_writing(
    compares_tokens: bool,
) -> (String, [u64; 2], Vec<Damage>) {
    let server = RedisServer::start().await;
    let mut stage = Stage::with_resource(OURS, vec![server.addr()], compares_tokens);
    let (first, second) = (stage.start_process(), stage.start_process());
    let late = stage.acquire(first).await;
    stage.expect_success(first, "read").await;
    stage.pause_past_its_lease(first, &server).await;
    let successor = stage.acquire(second).await;
    for order in ["read", "write", "release"] {
        stage.expect_success(second, order).await;
    }
    stage.resume(first);
    let reply = stage.order(first, "write").await;
    assert_eq!(stage.order(first, "release").await, "no", "notified of the loss");
    let damage = stage.damage(if compares_tokens { 1 } else { 2 });
    assert_eq!(stage.report(&server).await, [""; 0]);
    (reply, [late, successor], damage)
}

#[tokio::test]
async fn a_resource_that_compares_tokens_loses_nothing_to_a_pause() {
    let (reply, _, damage) = paused_between_reading_and_writing(true).await;
    assert_eq!((reply.as_str(), damage), ("no", Vec::new()));
}

#[tokio::test]
async fn a_resource_that_compares_no_tokens_loses_an_update_to_a_pause() {
    let (reply, [late, successor], damage) = paused_between_reading_and_writing(false).await;
    assert_eq!(reply, "yes");
    let stale = Damage::StaleToken { token: late, after: successor };
    let lost = Damage::LostUpdate { count: 1, writes: 2, by: late, over: successor };
    assert_eq!(damage, [stale, lost]);
}

/// Red without: one key for all (the checker finds two holders).
#[tokio::test]
async fn without_a_pause_nothing_is_lost_by_either() {
    for compares_tokens in [true, false] {
        let server = RedisServer::start().await;
        let mut stage = Stage::with_resource(OURS, vec![server.addr()], compares_tokens);
        let clients = [(); 3].map(|()| stage.start_process());
        for client in clients {
            stage.send(client, "add 30").await;
        }
        for client in clients {
            assert_eq!(stage.receive(client).await, "yes");
        }
        assert_eq!(stage.damage(90), []);
        assert_eq!(stage.report(&server).await, [""; 0]);
    }
}
