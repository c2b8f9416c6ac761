//! The two kinds of locks in a PostgreSQL database, and which of them a URL chooses.

use crate::store::AnyStore;

use url::Url;

use super::{PostgresSessionStore, PostgresStore};
use crate::Error;
use crate::lock::server_options::ServerOptions;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockKind {
    /// A row with an end.
    Lease,
    /// An advisory lock, which ends with its connection.
    Session,
}

impl LockKind {
    /// Takes the setting `lock` out of a URL's query, if it is there.
    pub(super) fn take(query: &mut Vec<(String, String)>) -> Result<Option<Self>, Error> {
        let Some(place) = query.iter().position(|(name, _)| name == "lock") else {
            return Ok(None);
        };
        match query.remove(place).1.as_str() {
            "lease" => Ok(Some(Self::Lease)),
            "session" => Ok(Some(Self::Session)),
            _ => Err(Error::InvalidOptions(
                "`lock` in the URL must be `lease` (the default) or `session`".into(),
            )),
        }
    }
}

/// Opens the store that a URL names, with the kind of locks that it chooses.
pub(crate) fn open(
    urls: &[Url],
    mut query: Vec<(String, String)>,
    defaults: ServerOptions,
) -> Result<AnyStore, Error> {
    Ok(match LockKind::take(&mut query)? {
        Some(LockKind::Session) => AnyStore::new(PostgresSessionStore::at(urls, &query, defaults)?),
        Some(LockKind::Lease) | None => AnyStore::new(PostgresStore::at(urls, &query, defaults)?),
    })
}
