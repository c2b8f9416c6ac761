//! Connects to the leader, if it is among the members that reply.
//!
//! A reply from a member that is cut off from the others proves little, and other members must
//! forward requests to the leader. So every connect asks all members which one leads.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, sleep_until, timeout};
use tonic::transport::Channel;

use super::call::{STATUS, unary};
use super::config::Member;
use super::connection::{Connection, ConnectionSlot};
use super::dialer::Dialer;
use super::failure::{Failure, Kind, root};
use super::messages::{Done, StatusResponse};
use super::tls;
use super::watches::Watches;
use crate::engines::dial::{LONGEST, handshake_limit};
use crate::store::StoreError;
use crate::store::last_reply::LastReply;

/// How long to wait for the leader's reply after another member has replied.
const LEADER_GRACE: Duration = Duration::from_millis(50);

impl ConnectionSlot {
    /// Makes the connection with this number.
    pub(super) async fn connect(&self, id: u64) -> Result<Connection, Failure> {
        let mut probes: FuturesUnordered<_> =
            self.config.members.iter().map(|member| self.probe_member(member)).collect();
        let (mut second_best, mut failures) = (None, Vec::new());
        let deadline = sleep_until(Instant::now());
        tokio::pin!(deadline);
        let (member, channel) = loop {
            let found = tokio::select! {
                found = probes.next() => found,
                // Without one, each probe ends in its own time.
                () = &mut deadline, if second_best.is_some() => None,
            };
            match found {
                Some((member, Ok((channel, MemberRole::Leader)))) => break (member, channel),
                Some((member, Ok((channel, MemberRole::Follower)))) => {
                    if second_best.is_none() {
                        deadline.as_mut().reset(Instant::now() + LEADER_GRACE);
                    }
                    second_best.get_or_insert((member, channel));
                }
                Some((member, Ok((_, MemberRole::NoLeader)))) => {
                    let sentence = format!("{} knows no leader", member.address);
                    failures.push(Failure::unknown(sentence));
                }
                Some((_, Err(why))) => failures.push(why),
                None => match second_best {
                    Some(found) => break found,
                    None => return Err(all_of(failures)),
                },
            }
        };
        let token = self.config.token(&channel, &member.address, &self.accepted).await?;
        let watches = Arc::new(Watches::new(channel.clone(), token.clone()));
        let last_reply = Arc::new(LastReply::new());
        Ok(Connection { id, address: member.address.clone(), channel, token, watches, last_reply })
    }

    /// Connects to one member and asks it which member leads.
    async fn probe_member<'a>(
        &self,
        member: &'a Member,
    ) -> (&'a Member, Result<(Channel, MemberRole), Failure>) {
        let limit = self.config.timing.connect_timeout;
        // The steps have limits of their own.
        let endpoint = &member.handshake.renewed(&member.endpoint).connect_timeout(LONGEST);
        let failed = |why: String| Failure::not_sent(StoreError::new(why));
        let dialer = match Dialer::to(endpoint, limit).await {
            Ok(dialer) => dialer,
            Err(error) => {
                return (
                    member,
                    Err(failed(format!("no connection to {}: {error}", member.address))),
                );
            }
        };
        let limit = handshake_limit(limit);
        let probe = async {
            let channel = match dialer {
                Some(dialer) => endpoint.connect_with_connector(dialer).await,
                None => endpoint.connect().await,
            };
            let channel = channel.map_err(|error| {
                let why = tls::refusal(&member.address, &error).unwrap_or_else(|| {
                    format!("no connection to {}: {}", member.address, root(&error))
                });
                let why = StoreError::new(why);
                Failure::not_sent(why.with_source(error))
            })?;
            let status: Result<StatusResponse, _> =
                unary(&channel, None, &member.address, STATUS, Done {}).await;
            let role = match status {
                Ok(status) => MemberRole::of(&status),
                // A refusal is a reply too, and that is enough.
                Err(failure) if failure.kind != Kind::Unknown => MemberRole::Follower,
                Err(failure) => return Err(failure),
            };
            Ok((channel, role))
        };
        let mut probed = timeout(limit, probe).await.unwrap_or_else(|_| {
            let sentence = format!("no answer from {} within {limit:?}", member.address);
            Err(Failure::unknown(sentence))
        });
        if probed.as_ref().is_err_and(|failure| failure.kind == Kind::Unknown) {
            let refusal = timeout(limit, member.handshake.refusal(&member.address, limit));
            if let Ok(Some(sentence)) = refusal.await {
                probed = Err(failed(sentence));
            }
        }
        (member, probed)
    }

    /// How long a connection may take: the leader's reply, then a provider and a login, twice each.
    pub(super) fn longest(&self) -> Duration {
        let timing = &self.config.timing;
        let once = timing.connect_timeout.saturating_add(timing.response_timeout);
        let handshakes = handshake_limit(timing.connect_timeout).saturating_mul(2);
        let probes = LONGEST.saturating_add(handshakes).saturating_add(LEADER_GRACE);
        probes.saturating_add(once.saturating_mul(2))
    }
}

/// What the members said, as one failure. A URL names at least one.
fn all_of(mut failures: Vec<Failure>) -> Failure {
    match failures.pop() {
        Some(only) if failures.is_empty() => only,
        last => {
            let sentences: Vec<_> =
                failures.iter().chain(&last).map(|failure| failure.error.to_string()).collect();
            Failure::not_sent(StoreError::new(sentences.join("; ")))
        }
    }
}

/// The role that a member reports.
enum MemberRole {
    Leader,
    Follower,
    /// It knows no leader.
    NoLeader,
}

impl MemberRole {
    fn of(status: &StatusResponse) -> Self {
        match (status.leader, &status.header) {
            (0, _) => Self::NoLeader,
            (leader, Some(header)) if leader == header.member_id => Self::Leader,
            _ => Self::Follower,
        }
    }
}
