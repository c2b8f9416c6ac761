//! The statements that execute requests, and what their replies mean.

use std::collections::HashMap;

use tokio_postgres::types::{FromSql, ToSql};
use tokio_postgres::{Client, Error, Row};

use super::acquire_reply::{AcquireRow, Clock, granted};
use super::parameters::{Claims, millis, name_of, names_of};
use super::queries::Query;
use super::requests::{DatabaseReply, DatabaseRequest};
use super::statements::Statements;
use crate::store::{AcquireOutcome, AcquireRequest, Claim, Sharing};

impl Query for [DatabaseRequest] {
    type Output = Vec<DatabaseReply>;

    async fn run(&self, to: &Statements, client: &Client) -> Result<Vec<DatabaseReply>, Error> {
        match self {
            [DatabaseRequest::Insert { claim, ttl }] => {
                let (name, token) = (name_of(claim), claim.token().to_bytes());
                let (token, value, ttl) = (&token[..], claim.value().as_bytes(), millis(*ttl));
                let params: [&(dyn ToSql + Sync); 4] = [&name, &token, &value, &ttl];
                let row = client.query_opt(&to.insert, &params).await?;
                Ok(vec![DatabaseReply::Inserted(first_of(row)?)])
            }
            [DatabaseRequest::Acquire { request, listener_lock }] => {
                let reply = acquire(request, *listener_lock, to, client).await?;
                Ok(vec![DatabaseReply::Acquired(reply)])
            }
            [DatabaseRequest::Delete(claim)] => {
                let (name, token) = (name_of(claim), claim.token().to_bytes());
                let row = client.query_opt(&to.delete, &[&name, &&token[..]]).await?;
                Ok(vec![DatabaseReply::Deleted(first_of(row)?)])
            }
            [DatabaseRequest::Insert { .. }, ..] => insert_many(self, to, client).await,
            [DatabaseRequest::Delete(_), ..] => delete_many(self, to, client).await,
            [DatabaseRequest::Renew(_), ..] => renew(self, to, client).await,
            [DatabaseRequest::Release(_), ..] => {
                let released = Claims::of(self).run(&to.release, client).await?;
                Ok(released.into_iter().map(DatabaseReply::Held).collect())
            }
            [DatabaseRequest::RenewShared(_), ..] => {
                let renewed = Claims::of(self).run(&to.renew_shared, client).await?;
                Ok(renewed.into_iter().map(DatabaseReply::Held).collect())
            }
            // No other request joins one.
            [] | [DatabaseRequest::Acquire { .. }, ..] => Ok(Vec::new()),
        }
    }
}

fn first_of<T: for<'a> FromSql<'a>>(row: Option<Row>) -> Result<Option<T>, Error> {
    Ok(row.map(|row| row.try_get(0)).transpose()?.flatten())
}

/// Locks, in the order in which every statement locks their rows.
fn in_order<'a, T>(locks: impl Iterator<Item = (&'a [u8], T)>) -> Vec<(&'a [u8], T)> {
    let mut locks: Vec<_> = locks.collect();
    locks.sort_by_key(|(name, _)| *name);
    locks
}

async fn insert_many(
    requests: &[DatabaseRequest],
    to: &Statements,
    client: &Client,
) -> Result<Vec<DatabaseReply>, Error> {
    let locks = in_order(requests.iter().filter_map(|request| match request {
        DatabaseRequest::Insert { claim, ttl } => Some((name_of(claim), (claim, millis(*ttl)))),
        _ => None,
    }));
    let names: Vec<_> = locks.iter().map(|(name, _)| *name).collect();
    let tokens: Vec<_> = locks.iter().map(|(_, (claim, _))| claim.token().to_bytes()).collect();
    let tokens: Vec<_> = tokens.iter().map(|token| &token[..]).collect();
    let values: Vec<_> = locks.iter().map(|(_, (claim, _))| claim.value().as_bytes()).collect();
    let ttls: Vec<_> = locks.iter().map(|(_, (_, ttl))| *ttl).collect();
    let params: [&(dyn ToSql + Sync); 4] = [&names, &tokens, &values, &ttls];
    let counters = by_token(&client.query(&to.insert_many, &params).await?)?;
    let reply = |request: &DatabaseRequest| {
        DatabaseReply::Inserted(counters.get(&token_of(request)).copied().flatten())
    };
    Ok(requests.iter().map(reply).collect())
}

async fn delete_many(
    requests: &[DatabaseRequest],
    to: &Statements,
    client: &Client,
) -> Result<Vec<DatabaseReply>, Error> {
    let locks = in_order(requests.iter().filter_map(|request| match request {
        DatabaseRequest::Delete(claim) => Some((name_of(claim), claim.token().to_bytes())),
        _ => None,
    }));
    let names: Vec<_> = locks.iter().map(|(name, _)| *name).collect();
    let tokens: Vec<_> = locks.iter().map(|(_, token)| &token[..]).collect();
    let held = by_token(&client.query(&to.delete_many, &[&names, &tokens]).await?)?;
    let reply = |request: &DatabaseRequest| {
        DatabaseReply::Deleted(held.get(&token_of(request)).copied().flatten())
    };
    Ok(requests.iter().map(reply).collect())
}

async fn renew(
    requests: &[DatabaseRequest],
    to: &Statements,
    client: &Client,
) -> Result<Vec<DatabaseReply>, Error> {
    let locks = in_order(requests.iter().flat_map(|request| {
        let (claim, ttl) = match request {
            DatabaseRequest::Renew(renewal) => (Some(&renewal.claim), millis(renewal.ttl)),
            _ => (None, 0),
        };
        claim.into_iter().flat_map(move |claim| {
            names_of(claim).map(move |name| (name, (claim.token().to_bytes(), ttl)))
        })
    }));
    let names: Vec<_> = locks.iter().map(|(name, _)| *name).collect();
    let tokens: Vec<_> = locks.iter().map(|(_, (token, _))| &token[..]).collect();
    let ttls: Vec<_> = locks.iter().map(|(_, (_, ttl))| *ttl).collect();
    let params: [&(dyn ToSql + Sync); 3] = [&names, &tokens, &ttls];
    let mut renewed = HashMap::<Vec<u8>, usize>::new();
    for row in client.query(&to.renew, &params).await? {
        *renewed.entry(row.try_get(0)?).or_default() += 1;
    }
    let reply = |request: &DatabaseRequest| {
        let locks = request.claim().map_or(0, |claim| claim.keys().len());
        DatabaseReply::Held(renewed.get(&token_of(request)[..]) == Some(&locks))
    };
    Ok(requests.iter().map(reply).collect())
}

/// The second column of each row, by the owner token in the first.
fn by_token<T: for<'a> FromSql<'a>>(rows: &[Row]) -> Result<HashMap<[u8; 16], Option<T>>, Error> {
    let mut values = HashMap::with_capacity(rows.len());
    for row in rows {
        // A token of another length is not a token of this process.
        if let Ok(token) = <[u8; 16]>::try_from(row.try_get::<_, &[u8]>(0)?) {
            values.insert(token, row.try_get(1)?);
        }
    }
    Ok(values)
}

fn token_of(request: &DatabaseRequest) -> [u8; 16] {
    request.claim().map_or([0; 16], |claim| claim.token().to_bytes())
}

/// Runs `acquire.sql`. `None` if the reply is not one that the function can give.
async fn acquire(
    request: &AcquireRequest,
    listener_lock: Option<i64>,
    to: &Statements,
    client: &Client,
) -> Result<Option<(AcquireOutcome, Clock)>, Error> {
    let AcquireRequest { claim, ttl, .. } = request;
    let (kind, permits) = match claim.sharing() {
        Sharing::Exclusive => ("x", 0),
        Sharing::Shared => ("s", 0),
        Sharing::Permits(permits) => ("p", i32::try_from(permits).unwrap_or(i32::MAX)),
    };
    let (token, value) = (claim.token().to_bytes(), claim.value().as_bytes());
    let (names, lasts) = (sorted_names(claim), millis(*ttl));
    let params: [&(dyn ToSql + Sync); 7] =
        [&names, &&token[..], &value, &kind, &permits, &lasts, &listener_lock];
    let row = client.query_one(&to.acquire, &params).await?;
    let row = AcquireRow {
        counter: row.try_get(0)?,
        contended: row.try_get(1)?,
        value: row.try_get(2)?,
        remains: row.try_get(3)?,
        ahead: row.try_get(4)?,
        clock: row.try_get(5)?,
    };
    Ok(granted(&row, *ttl, listener_lock.is_some()))
}

fn sorted_names(claim: &Claim) -> Vec<&[u8]> {
    let mut names: Vec<_> = names_of(claim).collect();
    names.sort_unstable();
    names
}
