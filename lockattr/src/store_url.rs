//! One URL chooses the store and sets the manager.

use std::sync::Arc;

use url::Url;

use crate::Error;
use crate::settings::{self, Settings};
use crate::store::{MemoryStore, Store};

/// Opens the store that `text` names, without contacting it, and puts the query's settings into
/// `settings`.
pub(crate) fn open(text: &str, settings: &mut Settings) -> Result<Arc<dyn Store>, Error> {
    let (url, query) = parse(text)?;
    let mut rest = Vec::new();
    for (name, value) in query {
        if !settings.set(&name, &value)? {
            rest.push((name, value));
        }
    }
    match url.scheme() {
        "memory" => memory(&url, &rest),
        #[cfg(feature = "redis")]
        "redis" | "redis+unix" => redis(url, &rest),
        #[cfg(feature = "tls")]
        "rediss" => redis(url, &rest),
        #[cfg(not(feature = "redis"))]
        "redis" | "redis+unix" | "rediss" => Err(missing_feature(url.scheme(), "redis")),
        #[cfg(all(feature = "redis", not(feature = "tls")))]
        "rediss" => Err(missing_feature("rediss", "tls")),
        other => Err(Error::InvalidOptions(format!(
            "no store is called `{other}://`: there are `memory://`, `redis://`, `rediss://` and \
             `redis+unix://`"
        ))),
    }
}

/// A URL without its query, and the query's names and values.
pub(crate) fn parse(text: &str) -> Result<(Url, Vec<(String, String)>), Error> {
    // What stands before the query may hold a password, so the message quotes nothing.
    let mut url = Url::parse(text).map_err(|error| {
        Error::InvalidOptions(format!(
            "the store's URL cannot be read ({error}): write it like `redis://127.0.0.1/`"
        ))
    })?;
    let query = url.query_pairs().into_owned().collect();
    url.set_query(None);
    Ok((url, query))
}

fn memory(url: &Url, rest: &[(String, String)]) -> Result<Arc<dyn Store>, Error> {
    if url.has_host() || !matches!(url.path(), "" | "/") {
        return Err(Error::InvalidOptions("`memory://` takes neither host nor path".into()));
    }
    match rest.first() {
        Some((name, _)) => Err(unknown_setting(name, "")),
        None => Ok(Arc::new(MemoryStore::new())),
    }
}

#[cfg(feature = "redis")]
fn redis(url: Url, rest: &[(String, String)]) -> Result<Arc<dyn Store>, Error> {
    Ok(Arc::new(crate::store::RedisStore::at(url, rest)?))
}

#[cfg(any(not(feature = "redis"), not(feature = "tls")))]
fn missing_feature(scheme: &str, feature: &str) -> Error {
    Error::InvalidOptions(format!(
        "`{scheme}://` needs lockattr's feature `{feature}`: add it in Cargo.toml"
    ))
}

/// The error for a setting that neither the manager nor the store knows.
pub(crate) fn unknown_setting(name: &str, stores: &str) -> Error {
    Error::InvalidOptions(format!(
        "the URL sets `{name}`, which is unknown: there are {}{stores}",
        settings::NAMES
    ))
}

/// A URL fit to be shown: no user, no password, no query.
pub(crate) fn redacted(text: &str) -> String {
    match Url::parse(text) {
        Ok(url) => {
            let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
            let host = url.host_str().unwrap_or_default();
            format!("{}://{host}{port}{}", url.scheme(), url.path())
        }
        Err(_) => "(unreadable URL)".into(),
    }
}
