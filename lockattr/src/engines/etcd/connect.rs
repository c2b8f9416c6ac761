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
use super::failure::{Failure, Kind, root};
use super::messages::{Done, StatusResponse};
use super::tls;
use super::watches::Watches;
use crate::store::StoreError;
use crate::store::last_reply::LastReply;

/// How long to wait for the leader's reply after another member has replied.
const LEADER_GRACE: Duration = Duration::from_millis(50);

impl ConnectionSlot {
    /// Makes the connection with this number.
    pub(super) async fn connect(&self, id: u64) -> Result<Connection, Failure> {
        let mut probes: FuturesUnordered<_> =
            self.config.members.iter().map(|member| self.probe_member(member)).collect();
        let (mut second_best, mut failure) = (None, None);
        let deadline = sleep_until(Instant::now() + self.config.timing.connect_timeout);
        tokio::pin!(deadline);
        let (member, channel) = loop {
            let found = tokio::select! {
                found = probes.next() => found,
                () = &mut deadline => None,
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
                    failure = Some(Failure::unknown(sentence));
                }
                Some((_, Err(why))) => failure = Some(why),
                None => match second_best {
                    Some(found) => break found,
                    None => return Err(failure.unwrap_or_else(|| self.no_connection())),
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
        let endpoint = member.endpoint.clone().connect_timeout(limit);
        let probe = async {
            let channel = endpoint.connect().await.map_err(|error| {
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
            let sentence = format!("no connection to {} within {limit:?}", member.address);
            Err(Failure::unknown(sentence))
        });
        if probed.as_ref().is_err_and(|failure| failure.kind == Kind::Unknown) {
            let refusal = timeout(limit / 4, member.handshake.refusal(&member.address));
            if let Ok(Some(sentence)) = refusal.await {
                probed = Err(Failure::not_sent(StoreError::new(sentence)));
            }
        }
        (member, probed)
    }

    /// How long a connection may take: the leader's reply, then a provider and a login, twice each.
    pub(super) fn longest(&self) -> Duration {
        let timing = &self.config.timing;
        let once = timing.connect_timeout.saturating_add(timing.response_timeout);
        let probes = timing.connect_timeout.saturating_add(LEADER_GRACE);
        probes.saturating_add(once.saturating_mul(2))
    }

    fn no_connection(&self) -> Failure {
        let (address, limit) = (&self.config.address, self.config.timing.connect_timeout);
        Failure::unknown(format!("no connection to {address} within {limit:?}"))
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
