//! One URL chooses the store and sets the manager.

use std::collections::HashSet;
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
        "redis" | "redis+unix" => redis(url, &rest, settings),
        #[cfg(feature = "tls")]
        "rediss" => redis(url, &rest, settings),
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
    // An `@` behind the host is the end of a password whose `/`, `?` or `#` was not encoded: then
    // anything here may be a part of it.
    let behind = [Some(url.path()), url.query(), url.fragment()];
    if behind.into_iter().flatten().any(|part| part.contains('@')) {
        return Err(Error::InvalidOptions(
            "the store's URL has an `@` behind its host: in a password, write `/` as `%2F`, `?` as \
             `%3F`, `#` as `%23` and `@` as `%40`"
                .into(),
        ));
    }
    if url.fragment().is_some() {
        let sentence = "the store's URL has a `#`: in a password, write it as `%23`";
        return Err(Error::InvalidOptions(sentence.into()));
    }
    let query: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    let mut names = HashSet::new();
    if !query.iter().all(|(name, _)| names.insert(name)) {
        let sentence = "the store's URL sets something twice: leave one of them out";
        return Err(Error::InvalidOptions(sentence.into()));
    }
    url.set_query(None);
    Ok((url, query))
}

fn memory(url: &Url, rest: &[(String, String)]) -> Result<Arc<dyn Store>, Error> {
    if url.has_host() || !matches!(url.path(), "" | "/") {
        return Err(Error::InvalidOptions("`memory://` takes neither host nor path".into()));
    }
    match rest.first() {
        Some((name, _)) => Err(unknown_setting(rest, name, "")),
        None => Ok(Arc::new(MemoryStore::new())),
    }
}

#[cfg(feature = "redis")]
fn redis(
    url: Url,
    rest: &[(String, String)],
    settings: &Settings,
) -> Result<Arc<dyn Store>, Error> {
    Ok(Arc::new(crate::store::RedisStore::at(url, rest, settings.server.clone())?))
}

#[cfg(any(not(feature = "redis"), not(feature = "tls")))]
fn missing_feature(scheme: &str, feature: &str) -> Error {
    Error::InvalidOptions(format!(
        "`{scheme}://` needs lockattr's feature `{feature}`: add it in Cargo.toml"
    ))
}

/// The error for a setting that neither the manager nor the store knows. Does not quote what may
/// be the rest of a password with an `&` in it.
pub(crate) fn unknown_setting(query: &[(String, String)], name: &str, stores: &str) -> Error {
    let secret = query.iter().any(|(name, _)| name == "pass");
    let named = if secret { String::new() } else { format!(" `{name}`") };
    Error::InvalidOptions(format!(
        "the URL sets something unknown{named}: there are {}{stores}",
        settings::NAMES
    ))
}

/// A URL fit to be shown: no user, no password, no query, and of a path only what cannot be one.
pub(crate) fn redacted(text: &str) -> String {
    let Ok(url) = Url::parse(text) else { return "(unreadable URL)".into() };
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let host = url.host_str().unwrap_or_default();
    let database = url.path().bytes().skip(1).all(|byte| byte.is_ascii_digit());
    let path = if database || !url.has_host() { url.path() } else { "/…" };
    format!("{}://{host}{port}{path}", url.scheme())
}
