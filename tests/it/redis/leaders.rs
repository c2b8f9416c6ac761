//! Leaders on one Redis server: single requests that are held or lost, and what a follower costs.

use lockattr_tests::{Engine, Fault, Proxy, RedisServer, eventually, with_query};
use tokio::time::Instant;

use crate::leader_faults::{Campaign, Leader};

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
        let url = with_query(&server.url_through(&proxy), "connections=1&response_timeout=1500ms");
        let (mut leader, mut follower) = (campaign.process_at(&url), campaign.process());
        // A whole round, so that the server knows all scripts: what it answers to an unknown one is a reply too.
        let first = campaign.begins(&mut [&mut leader, &mut follower]).await;
        let second = campaign.hands_over(&mut leader, &mut follower, first).await;
        let term = campaign.hands_over(&mut follower, &mut leader, second).await;
        campaign.waits(1).await;
        leader.goes_on(term, 3).await;
        Self { campaign, proxy, leader, follower, term }
    }

    /// Waits until the next renewal has met its fault.
    async fn renewal_meets(&self, fault: Fault) {
        let before = self.proxy.seen("renew");
        self.proxy.next("renew", fault);
        let seen = async || self.proxy.seen("renew") > before;
        eventually("a renewal is under way", seen).await;
    }

    /// Makes the leader resign, and returns the next term once a release has been answered: the lease did not end by
    /// itself.
    async fn released(&mut self) -> u64 {
        let before = self.proxy.answered("release");
        self.leader.resigns(self.term).await;
        let released = async || self.proxy.answered("release") > before;
        eventually("a release is answered", released).await;
        self.campaign.follows(&mut self.leader, &mut self.follower).await
    }

    async fn is_renewed(&self) {
        let renewed = self.proxy.answered("renew");
        let again = async || self.proxy.answered("renew") > renewed;
        eventually("it is renewed", again).await;
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
    let next = fleet.released().await;
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
    // By another connection, once this one is silent for as long as its timeout.
    let next = fleet.released().await;
    // Whether others wait is said before it.
    let is_token = |word: &&str| word.len() == 32 && word.chars().all(|it| it.is_ascii_hexdigit());
    let token = async || {
        let value = cli.value("lock:scheduler").await.expect("it is held");
        value.split(' ').find(is_token).expect("a token").to_owned()
    };
    let held_by = token().await;
    fleet.proxy.pass();
    fleet.campaign.waits(1).await;
    fleet.follower.goes_on(next, 10).await;
    assert_eq!(token().await, held_by);
    let judged = fleet.campaign.over([fleet.leader, fleet.follower]).await;
    assert_eq!(judged.refused, 0);
}

#[tokio::test]
async fn a_release_that_is_lost_is_sent_again() {
    for fault in [Fault::SwallowRequest, Fault::SwallowReply, Fault::CutBefore, Fault::CutAfter] {
        let server = RedisServer::start().await;
        let mut fleet = Fleet::on(&server).await;
        fleet.proxy.next("release", fault.clone());
        let next = fleet.released().await;
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
    fleet.is_renewed().await;
    cli.query::<String>(&["SET", "lock:scheduler", "another", "PX", "600000"]).await;
    let renewed = fleet.proxy.answered("renew");
    fleet.leader.ends(fleet.term).await;
    // One may have been answered before, and its reply not been seen.
    let renewals = fleet.proxy.answered("renew") - renewed;
    assert!((1..=2).contains(&renewals), "{renewals} renewals, and not the end of the lease");
    assert_eq!(cli.value("lock:scheduler").await.as_deref(), Some("another"));
    cli.query::<i64>(&["DEL", "lock:scheduler"]).await;
    let next = fleet.campaign.follows(&mut fleet.leader, &mut fleet.follower).await;
    assert!(next > fleet.term);
    fleet.campaign.over([fleet.leader, fleet.follower]).await;
}

/// At the default TTL of ten seconds, with the heartbeats of its connection: nine times, and it never asks early.
///
/// Red without: the pause of `campaign_again_at`, which is twice that of other waiters.
#[tokio::test]
async fn a_follower_asks_at_most_ten_times_a_minute() {
    let server = RedisServer::start().await;
    let campaign = Campaign::on(&server, "scheduler");
    let proxy = Proxy::start(server.addr()).await;
    let mut leader = campaign.start(&Engine::url(&server), 2);
    let mut follower = campaign.start(&with_query(&server.url_through(&proxy), "ttl=10s"), 2);
    campaign.begins(&mut [&mut leader, &mut follower]).await;
    // Its connections are set up.
    let asked = proxy.seen("acquire");
    eventually("it asks again", async || proxy.seen("acquire") > asked).await;
    let since = Instant::now();
    proxy.clear_log();
    // A notification may be lost.
    let asks = async || proxy.log().iter().filter(|name| *name == "acquire").count() >= 5;
    eventually("it asks five times more", asks).await;
    let log = proxy.log();
    let (beats, asked): (Vec<_>, Vec<_>) = log.iter().partition(|name| *name == "ping");
    let most = 1.0 + since.elapsed().as_secs_f64() / 60.0 * 9.1;
    assert!(asked.len() as f64 <= most && beats.len() < asked.len(), "{log:?}");
    assert!(asked.iter().all(|name| *name == "acquire"), "{log:?}");
    campaign.over([follower, leader]).await;
}
