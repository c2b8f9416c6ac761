//! The statements that execute requests, and what their replies mean.

use tokio_postgres::types::ToSql;

use super::super::failure::Failure;
use super::Inner;
use super::requests::{SessionReply, SessionRequest, Tried};
use super::session::Session;
use crate::store::{Claim, LockKey, Sharing};

impl Session {
    /// Executes requests, all of one kind, in one statement.
    pub(super) async fn execute(
        &self,
        inner: &Inner,
        requests: &[SessionRequest],
    ) -> Result<Vec<SessionReply>, Failure> {
        match requests {
            [] => Ok(Vec::new()),
            [SessionRequest::Try(..), ..] => self.try_locks(inner, requests).await,
            [SessionRequest::Unlock(..), ..] => self.unlocks(requests).await,
            [SessionRequest::Check(_), ..] => self.checks(requests).await,
            [SessionRequest::QueueStatus(claim, pid), ..] => {
                let names: Vec<_> = claim.keys().iter().map(LockKey::name).collect();
                let params: [&(dyn ToSql + Sync); 2] = [&names, pid];
                let query = self.client.query_one(&self.statements.queue_status, &params);
                let row = self.within_timeout(query).await?;
                let row = (self.read(&row, 1)?, self.read(&row, 2)?, self.read(&row, 3)?);
                Ok(vec![SessionReply::QueueStatus(row)])
            }
            [SessionRequest::Holder(name), ..] => {
                let params: [&(dyn ToSql + Sync); 1] = [name];
                let query = self.client.query_opt(&self.statements.holder, &params);
                let row = self.within_timeout(query).await?.map(|row| {
                    Ok::<_, Failure>((
                        self.read(&row, 1)?,
                        self.read(&row, 2)?,
                        self.read(&row, 3)?,
                        self.read(&row, 4)?,
                    ))
                });
                Ok(vec![SessionReply::Holder(row.transpose()?)])
            }
        }
    }

    async fn try_locks(
        &self,
        inner: &Inner,
        requests: &[SessionRequest],
    ) -> Result<Vec<SessionReply>, Failure> {
        let (mut locks, mut refused) = (Locks::default(), Vec::with_capacity(requests.len()));
        for request in requests {
            let SessionRequest::Try(claim, ttl) = request else { continue };
            let too_many = inner.claims.send(claim, &inner.lock_table).err();
            if too_many.is_none() {
                self.prepare_for(claim, *ttl);
                locks.add(claim, None);
            }
            refused.push(too_many);
        }
        let (taken, number): (Vec<bool>, Option<i64>) = match &locks.0[..] {
            [] => (Vec::new(), None),
            [(name, shared)] => {
                let params: [&(dyn ToSql + Sync); 3] = [name, shared, &self.pid];
                let query = self.client.query_one(&self.statements.try_one, &params);
                let row = self.within_timeout(query).await?;
                let number: Option<i64> = self.read(&row, 1)?;
                (vec![number.is_some()], number)
            }
            _ => {
                let (names, shared) = locks.columns();
                let params: [&(dyn ToSql + Sync); 3] = [&names, &shared, &self.pid];
                let query = self.client.query_one(&self.statements.try_many, &params);
                let row = self.within_timeout(query).await?;
                (self.read(&row, 1)?, self.read(&row, 2)?)
            }
        };
        let mut taken = taken.into_iter();
        let replies = requests.iter().zip(refused).map(|(request, refused)| {
            if let Some(error) = refused {
                return SessionReply::Tried(Tried::Refused(error));
            }
            let own: Vec<_> = taken.by_ref().take(keys_of(request)).collect();
            let number = number.filter(|_| own.iter().all(|taken| *taken));
            SessionReply::Tried(Tried::Taken(own, number))
        });
        Ok(replies.collect())
    }

    async fn unlocks(&self, requests: &[SessionRequest]) -> Result<Vec<SessionReply>, Failure> {
        let (mut locks, mut counts) = (Locks::default(), Vec::with_capacity(requests.len()));
        for request in requests {
            let SessionRequest::Unlock(claim, which) = request else { continue };
            let before = locks.0.len();
            locks.add(claim, which.as_deref());
            counts.push(locks.0.len() - before);
        }
        let held: Vec<bool> = match &locks.0[..] {
            [(name, shared)] => {
                let params: [&(dyn ToSql + Sync); 3] = [name, shared, &self.pid];
                let query = self.client.query_one(&self.statements.unlock_one, &params);
                vec![self.read(&self.within_timeout(query).await?, 1)?]
            }
            _ => {
                let (names, shared) = locks.columns();
                let params: [&(dyn ToSql + Sync); 3] = [&names, &shared, &self.pid];
                let query = self.client.query_one(&self.statements.unlock_many, &params);
                self.read(&self.within_timeout(query).await?, 1)?
            }
        };
        let mut held = held.into_iter();
        let replies = counts.into_iter().map(|count| {
            let own: Vec<_> = held.by_ref().take(count).collect();
            SessionReply::Unlocked(own.len() == count && own.iter().all(|held| *held))
        });
        Ok(replies.collect())
    }

    async fn checks(&self, requests: &[SessionRequest]) -> Result<Vec<SessionReply>, Failure> {
        let mut names = Vec::with_capacity(requests.len());
        for request in requests {
            let SessionRequest::Check(claim) = request else { continue };
            names.extend(claim.keys().iter().map(LockKey::name));
        }
        let params: [&(dyn ToSql + Sync); 1] = [&names];
        let query = self.client.query_one(&self.statements.held_and_contended, &params);
        let row = self.within_timeout(query).await?;
        let (held, contended): (Vec<bool>, Vec<bool>) = (self.read(&row, 1)?, self.read(&row, 2)?);
        let (mut held, mut contended) = (held.into_iter(), contended.into_iter());
        let replies = requests.iter().map(|request| {
            let count = keys_of(request);
            let own = held.by_ref().take(count).collect();
            SessionReply::Checked(own, contended.by_ref().take(count).collect())
        });
        Ok(replies.collect())
    }
}

/// Names of locks, each with whether it is shared.
#[derive(Default)]
struct Locks<'a>(Vec<(&'a str, bool)>);

impl<'a> Locks<'a> {
    /// Adds the locks of a claim, or those whose entry in `which` is `true`.
    fn add(&mut self, claim: &'a Claim, which: Option<&[bool]>) {
        let shared = claim.sharing() == Sharing::Shared;
        for (nth, key) in claim.keys().iter().enumerate() {
            if which.is_none_or(|which| which.get(nth) == Some(&true)) {
                self.0.push((key.name(), shared));
            }
        }
    }

    fn columns(&self) -> (Vec<&'a str>, Vec<bool>) {
        self.0.iter().copied().unzip()
    }
}

fn keys_of(request: &SessionRequest) -> usize {
    match request {
        SessionRequest::Check(claim)
        | SessionRequest::Unlock(claim, _)
        | SessionRequest::Try(claim, _)
        | SessionRequest::QueueStatus(claim, _) => claim.keys().len(),
        SessionRequest::Holder(_) => 1,
    }
}
