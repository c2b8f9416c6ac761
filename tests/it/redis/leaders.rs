//! Leaders on one Redis server: single requests that are held or lost, and what a follower costs.

use std::time::Duration;

use lockattr_tests::{Engine, Fault, Proxy, RedisServer, eventually, with_query};
use tokio::time::{Instant, sleep};

use crate::leader_faults::{Campaign, Leader};

/// Shorter than a lease of six seconds that is nearly new, and longer than two timeouts of a reply.
const BEFORE_THE_LEASE_ENDS: Duration = Duration::from_secs(5);

/// A leader behind a network with faults on request, and a follower.
struct Fleet<'a> {
    campaign: Campaign<'a, RedisServer>,
    proxy: Proxy,
    leader: Leader,
    follower: Leader,
    term: u64,
}

impl<'a> Fleet<'a> {
    async fn on(server: &'a RedisServer) -> Self {
        let campaign = Campaign::on(server, "scheduler");
        let proxy = Proxy::start(server.addr()).await;
        let url = with_query(&server.url_through(&proxy), "connections=1");
        let (mut leader, mut follower) = (campaign.process_at(&url), campaign.process());
        // A whole round, so that the server knows all scripts: what it answers to an unknown one is a reply too.
        let first = campaign.begins(&mut [&mut leader, &mut follower]).await;
        leader.node.say("resign").await;
        leader.expect(&format!("ended {first}")).await;
        let second = follower.leads().await;
        campaign.follows_again(&mut leader, follower.id()).await;
        follower.node.say("resign").await;
        follower.expect(&format!("ended {second}")).await;
        let term = leader.leads().await;
        campaign.follows_again(&mut follower, leader.id()).await;
        leader.goes_on(term, 3).await;
        Self { campaign, proxy, leader, follower, term }
    }

    /// Waits until the next renewal has met its fault. The lease is nearly new then, or would be.
    async fn renewal_meets(&self, fault: Fault) {
        let before = self.proxy.seen("renew");
        self.proxy.next("renew", fault);
        let seen = async || self.proxy.seen("renew") > before;
        eventually("a renewal is under way", seen).await;
    }

    async fn resigns(&mut self) -> Instant {
        self.leader.node.say("resign").await;
        self.leader.expect(&format!("ended {}", self.term)).await;
        Instant::now()
    }
}

/// All later replies of the connection are held too. The release needs two: the first says that others wait. So it is
/// sent again by another connection, once this one was silent for as long as its timeout.
///
/// Red without: the release after a term, whatever else is under way.
#[tokio::test]
async fn a_resignation_behind_a_reply_that_never_comes_is_sent_again() {
    let server = RedisServer::start().await;
    let mut fleet = Fleet::on(&server).await;
    fleet.renewal_meets(Fault::HoldReply).await;
    fleet.resigns().await;
    let next = fleet.follower.leads_within(BEFORE_THE_LEASE_ENDS).await;
    assert!(next > fleet.term);
    fleet.proxy.pass();
    fleet.follower.goes_on(next, 3).await;
    fleet.campaign.over([fleet.leader, fleet.follower]).await;
}

/// The renewal, and the release behind it, reach the server when another process leads.
#[tokio::test]
async fn a_renewal_that_arrives_after_the_next_term_began_changes_nothing() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let mut fleet = Fleet::on(&server).await;
    fleet.renewal_meets(Fault::HoldRequest).await;
    fleet.resigns().await;
    // By another connection, once this one is silent for as long as its timeout.
    let next = fleet.follower.leads_within(BEFORE_THE_LEASE_ENDS).await;
    // Whether others wait is said before it.
    let is_token = |word: &&str| word.len() == 32 && word.chars().all(|it| it.is_ascii_hexdigit());
    let token = async || {
        let value = cli.value("lock:scheduler").await.expect("it is held");
        value.split(' ').find(is_token).expect("a token").to_owned()
    };
    let held_by = token().await;
    fleet.proxy.pass();
    let mut follows = fleet.leader;
    fleet.campaign.follows_again(&mut follows, fleet.follower.id()).await;
    fleet.follower.goes_on(next, 10).await;
    assert_eq!(token().await, held_by);
    let judged = fleet.campaign.over([follows, fleet.follower]).await;
    assert_eq!(judged.refused, 0);
}

#[tokio::test]
async fn a_release_that_is_lost_is_sent_again() {
    for fault in [Fault::SwallowRequest, Fault::SwallowReply, Fault::CutBefore, Fault::CutAfter] {
        let server = RedisServer::start().await;
        let mut fleet = Fleet::on(&server).await;
        // A lease that is nearly new.
        let renewed = fleet.proxy.answered("renew");
        let again = async || fleet.proxy.answered("renew") > renewed;
        eventually("it is renewed", again).await;
        fleet.proxy.next("release", fault.clone());
        fleet.resigns().await;
        // After the timeout of its reply, and before the lease ends.
        let next = fleet.follower.leads_within(BEFORE_THE_LEASE_ENDS).await;
        fleet.follower.goes_on(next, 3).await;
        fleet.campaign.over([fleet.leader, fleet.follower]).await;
    }
}

/// Another program took the lock: the leader learns of it by its next renewal, and not when its lease ends.
#[tokio::test]
async fn a_renewal_that_finds_another_holder_ends_the_term() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    let mut fleet = Fleet::on(&server).await;
    let renewed = fleet.proxy.answered("renew");
    let again = async || fleet.proxy.answered("renew") > renewed;
    eventually("it is renewed", again).await;
    let taken = Instant::now();
    cli.query::<String>(&["SET", "lock:scheduler", "another", "PX", "8000"]).await;
    fleet.leader.expect(&format!("ended {}", fleet.term)).await;
    let after = taken.elapsed();
    assert!(after < Duration::from_secs(4), "a third of the TTL has passed {after:?} before");
    // No process leads while the other program has the lock.
    assert!(cli.pttl("lock:scheduler").await > 0);
    let next = fleet.follower.leads_within(Duration::from_secs(10)).await;
    assert!(taken.elapsed() >= Duration::from_secs(8), "{:?}", taken.elapsed());
    assert!(next > fleet.term);
    fleet.campaign.over([fleet.leader, fleet.follower]).await;
}

/// At the default TTL of ten seconds, with the heartbeats of its connection.
///
/// Red without: the pause of `campaign_again_at`, which is twice that of other waiters.
#[tokio::test]
async fn a_follower_asks_at_most_ten_times_a_minute() {
    let server = RedisServer::start().await;
    let campaign = Campaign::on(&server, "scheduler");
    let proxy = Proxy::start(server.addr()).await;
    let mut leader = campaign.start(&Engine::url(&server), 2);
    let mut follower = campaign.start(&server.url_through(&proxy), 2);
    campaign.begins(&mut [&mut leader, &mut follower]).await;
    // Its connections are set up.
    let asked = proxy.seen("acquire");
    eventually("it asks again", async || proxy.seen("acquire") > asked).await;
    proxy.clear_log();
    sleep(Duration::from_secs(60)).await;
    let log = proxy.log();
    let (beats, asked): (Vec<_>, Vec<_>) = log.iter().partition(|name| *name == "ping");
    assert!(log.len() <= 10 && beats.len() < asked.len(), "{log:?}");
    // It still asks: a notification may be lost.
    assert!(asked.len() >= 5 && asked.iter().all(|name| *name == "acquire"), "{log:?}");
    campaign.over([follower, leader]).await;
}
