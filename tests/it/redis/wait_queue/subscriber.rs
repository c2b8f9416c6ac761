//! Notifications to waiters that get lost on their way.

use lockattr_tests::{Fault, Proxy, RedisServer, StoppedClock, eventually, in_time, with_query};

use super::*;

/// How the connection that carries notifications ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Killed,
    Cut,
    CutBeforeItsHeartbeat,
    HalfOpen,
}

impl End {
    async fn comes_to(self, proxy: &Proxy, cli: &Cli) {
        match self {
            Self::Killed => {
                let killed: usize = cli.query(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
                // The holder's as well, and those that are not just being replaced.
                assert!(killed > 0);
            }
            Self::Cut => proxy.cut().await,
            Self::CutBeforeItsHeartbeat => proxy.always("ping", Fault::CutBefore),
            Self::HalfOpen => proxy.always("ping", Fault::HalfOpen),
        }
    }
}

/// The clock stands still, so it is not the timer that makes it ask.
#[tokio::test]
async fn a_waiter_whose_connection_ends_asks_again_at_once() {
    let server = RedisServer::start().await;
    let (cli, witness, clock) = (server.cli().await, Witness::default(), StoppedClock::new());
    let proxy = Proxy::start(server.addr()).await;
    let first = manager(&server, LONG).await;
    let holder = acquire(&first).await;
    let url = with_query(&server.url_through(&proxy), LONG);
    let next = LockManager::connect(url).await.unwrap();
    let waiting = crowd(&next, &witness, 1);
    wait_until_queued(&cli, 1).await;
    // By then it has read the answer.
    next.holder("another").await.unwrap();
    let before = proxy.seen("acquire");
    proxy.cut().await;
    eventually("it asks again", async || proxy.seen("acquire") > before).await;
    witness.saw(holder.fencing_token());
    holder.release().await.unwrap();
    all_have_worked(vec![waiting]).await;
    drop((first, next, clock));
    assert_no_trace(&server).await;
}

/// They are granted the lock while no notification can reach them: none is forgotten.
#[tokio::test]
async fn grants_published_while_the_waiters_are_disconnected_strand_no_waiter() {
    for end in [End::Killed, End::Cut, End::CutBeforeItsHeartbeat, End::HalfOpen] {
        let server = RedisServer::start().await;
        let (cli, witness) = (server.cli().await, Witness::default());
        let proxy = Proxy::start(server.addr()).await;
        let query = format!("{LONG}&connections=1&heartbeat=100ms&response_timeout=2s");
        let first = manager(&server, LONG).await;
        let holder = acquire(&first).await;
        let holders = subscribers(&cli).await;
        let (mut crowds, mut waiting) = (Vec::new(), Vec::new());
        for place in 1..=2 {
            let url = with_query(&server.url_through(&proxy), &query);
            waiting.push(LockManager::connect(url).await.unwrap());
            crowds.push(crowd(&waiting[place - 1], &witness, 3));
            wait_until_queued(&cli, place).await;
        }
        proxy.refuse().await;
        end.comes_to(&proxy, &cli).await;
        let deaf =
            async || subscribers(&cli).await.iter().all(|subscriber| holders.contains(subscriber));
        eventually("they are disconnected", deaf).await;
        witness.saw(holder.fencing_token());
        holder.release().await.unwrap();
        wait_until_queued(&cli, 0).await;
        assert_eq!(witness.count(), 0, "no process can know");
        proxy.pass();
        proxy.accept().await;
        all_have_worked(crowds).await;
        assert_eq!(witness.count(), 6, "{end:?}");
        drop((first, waiting));
        assert_no_trace(&server).await;
    }
}

/// No connection ends: one notification is missing, which no client can notice.
#[tokio::test]
async fn a_grant_that_is_lost_on_its_way_costs_no_more_than_a_ttl() {
    let server = RedisServer::start().await;
    let (cli, witness) = (server.cli().await, Witness::default());
    let proxy = Proxy::start(server.addr()).await;
    let (first, next) = (manager(&server, LONG).await, manager(&server, LONG).await);
    let url = with_query(&server.url_through(&proxy), LONG);
    let deaf = LockManager::connect(url).await.unwrap();
    let holder = acquire(&first).await;
    let mut crowds = vec![crowd(&deaf, &witness, 3)];
    wait_until_queued(&cli, 1).await;
    crowds.push(crowd(&next, &witness, 3));
    wait_until_queued(&cli, 2).await;
    proxy.swallow_messages(1);
    witness.saw(holder.fencing_token());
    holder.release().await.unwrap();
    all_have_worked(crowds).await;
    assert_eq!(witness.count(), 6);
    assert_eq!(proxy.seen("message"), proxy.answered("message") + 1, "one was swallowed");
    drop((first, next, deaf));
    assert_no_trace(&server).await;
}

/// Its lease has ended, another client has the lock, and the waiter's recheck was sent after the
/// grant. So the grant is older than that recheck, though it is read later.
#[tokio::test]
async fn a_grant_that_arrives_after_its_lease_and_a_later_request_is_discarded() {
    let server = RedisServer::start().await;
    let (cli, witness) = (server.cli().await, Witness::default());
    let proxy = Proxy::start(server.addr()).await;
    let (first, next) = (manager(&server, LONG).await, manager(&server, LONG).await);
    let url = with_query(&server.url_through(&proxy), SHORT);
    let deaf = LockManager::connect(url).await.unwrap();
    let holder = acquire(&first).await;
    let wait = |manager: &LockManager| {
        let manager = manager.clone();
        tokio::spawn(async move { acquire(&manager).await })
    };
    let late = wait(&deaf);
    wait_until_queued(&cli, 1).await;
    let waiting = wait(&next);
    wait_until_queued(&cli, 2).await;
    proxy.freeze();
    let questions = proxy.seen("acquire");
    witness.saw(holder.fencing_token());
    holder.release().await.unwrap();
    let successor = in_time(waiting).await.unwrap();
    eventually("it has sent a request", async || proxy.seen("acquire") > questions).await;
    witness.sees(&successor).await;
    proxy.pass();
    wait_until_queued(&cli, 1).await;
    // It is answered after all that, so the manager has read the notification.
    deaf.holder("a").await.unwrap();
    assert!(!late.is_finished(), "it believes to hold");
    successor.ensure_held().unwrap();
    successor.release().await.expect("another process held it meanwhile");
    let late = in_time(late).await.unwrap();
    witness.sees(&late).await;
    late.release().await.unwrap();
    drop((first, next, deaf));
    assert_no_trace(&server).await;
}
