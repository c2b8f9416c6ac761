//! Parses the URL of a store, and decides which parts of it may be shown.

use std::collections::HashSet;

use url::Url;

use crate::Error;
use crate::lock::settings;

pub(crate) struct StoreUrl {
    /// One for each host, without the query. There is at least one.
    pub(crate) urls: Vec<Url>,
    pub(crate) query: Vec<(String, String)>,
}

impl StoreUrl {
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        // First, because the rest of such a password makes hosts and ports that cannot be read.
        check_password(text)?;
        let mut query = Vec::new();
        let mut urls = Vec::new();
        for text in split_hosts(text) {
            let (url, settings) = parse_one(&text)?;
            urls.push(url);
            query = settings;
        }
        Ok(Self { urls, query })
    }
}

fn after_scheme(text: &str) -> usize {
    text.find("://").map_or(0, |scheme| scheme + "://".len())
}

/// Refuses an `@` after the host: it ends a password whose `/`, `?` or `#` was not encoded. Any part
/// of the text may then belong to the password.
fn check_password(text: &str) -> Result<(), Error> {
    let rest = &text[after_scheme(text)..];
    // Without `://` there is no host, and all of it may be a login.
    let no_host = rest.len() == text.len();
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    if (no_host && rest.contains('@')) || rest[end..].contains('@') {
        return Err(not_encoded());
    }
    Ok(())
}

fn not_encoded() -> Error {
    Error::InvalidOptions(
        "the store's URL has an `@` after its host: in a password, write `/` as `%2F`, `?` as \
             `%3F`, `#` as `%23`, `@` as `%40` and `%` as `%25`"
            .into(),
    )
}

/// One URL for each of the hosts, which commas separate.
fn split_hosts(text: &str) -> Vec<String> {
    let start = after_scheme(text);
    let authority = text[start..].find(['/', '?', '#']).map_or(&text[start..], |end| {
        // In bounds, because `find` returned it.
        &text[start..start + end]
    });
    let login = authority.rfind('@').map_or(0, |at| at + 1);
    let (before, after) = (&text[..start + login], &text[start + authority.len()..]);
    authority[login..].split(',').map(|host| [before, host, after].concat()).collect()
}

fn parse_one(text: &str) -> Result<(Url, Vec<(String, String)>), Error> {
    // The text before the query may hold a password, so the message quotes nothing.
    let mut url = Url::parse(text).map_err(|error| {
        Error::InvalidOptions(format!(
            "the store's URL cannot be read ({error}): write it like `redis://127.0.0.1/`"
        ))
    })?;
    // Also in a text that has no host.
    let after_host = [Some(url.path()), url.query(), url.fragment()];
    if after_host.into_iter().flatten().any(|part| part.contains('@')) {
        return Err(not_encoded());
    }
    if url.fragment().is_some() {
        let sentence = "the store's URL has a `#`: in a password, write it as `%23`";
        return Err(Error::InvalidOptions(sentence.into()));
    }
    let query: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    let mut names = HashSet::new();
    if !query.iter().all(|(name, _)| names.insert(name)) {
        let sentence = "the store's URL sets an option twice: leave one of them out";
        return Err(Error::InvalidOptions(sentence.into()));
    }
    url.set_query(None);
    Ok((url, query))
}

/// The error for a setting that neither the manager nor the store knows. It does not quote what may
/// be the rest of a password with an `&` in it.
pub(crate) fn unknown_setting(query: &[(String, String)], name: &str, stores: &str) -> Error {
    let secret = query.iter().any(|(name, _)| name.ends_with("pass") || name == "password");
    let named = if secret { String::new() } else { format!(" `{name}`") };
    Error::InvalidOptions(format!(
        "the URL sets an unknown option{named}: there are {}{stores}",
        settings::NAMES
    ))
}

/// The URL without user, password and query, and with a path only if that cannot be a password.
pub(crate) fn redacted(text: &str) -> String {
    match StoreUrl::parse(text) {
        Ok(StoreUrl { urls, .. }) => shown(&urls),
        Err(_) => "(unreadable URL)".into(),
    }
}

/// As [`redacted`], for a parsed URL.
pub(crate) fn shown(urls: &[Url]) -> String {
    let hosts: Vec<_> = urls.iter().map(host).collect();
    let (hosts, url) = (hosts.join(","), &urls[0]);
    let database = url.path().bytes().skip(1).all(|byte| byte.is_ascii_digit());
    let path = if database || !url.has_host() { url.path() } else { "/…" };
    format!("{}://{hosts}{path}", url.scheme())
}

fn host(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    [url.host_str().unwrap_or_default(), &port].concat()
}

#[cfg(test)]
mod tests {
    use crate::LockManager;

    /// Every form of URL that may have a password.
    const FORMS: [&str; 11] = [
        "redis://PASS@h:6379/0",
        "rediss://PASS@h:6380/?prefix=a",
        "redis+unix://PASS@/run/redis.sock",
        "redis+sentinel://PASS@h1:1,h2,h3/master",
        "redis+cluster://PASS@h1,h2:2?ttl=3s",
        "redlock://PASS@h1,h2,h3?ttl=3s",
        "postgres://PASS@h/db",
        "postgresql://PASS@h1,h2/db?lock=session",
        "mysql://PASS@h/db",
        "zookeeper://PASS@h1,h2/chroot",
        "etcd://PASS@h1:1,h2:2/",
    ];

    /// Whatever the characters before and after it make of the rest: a host, a port, a path.
    ///
    /// Red without: `check_password`.
    #[test]
    fn a_password_that_is_not_encoded_gets_a_hint_in_every_form_of_url() {
        for form in FORMS {
            for mark in ["/", "?", "#", "/?#", "//", "?a=b&c#"] {
                for login in
                    ["user:s3cr3t_gehe1m", ":s3cr3t_gehe1m", "u:12_s3cr3t", "s3cr3t_[", "_s3cr3t"]
                {
                    let url = form.replace("PASS", &login.replace('_', mark));
                    let error = LockManager::builder().url(&url).build().unwrap_err();
                    let error = format!("{error} {error:?}");
                    assert!(
                        error.contains("`/` as `%2F`, `?` as `%3F`, `#` as `%23`"),
                        "{url}: {error}"
                    );
                    for secret in ["s3cr3t", "gehe1m"] {
                        assert!(!error.contains(secret), "{url}: {error}");
                    }
                }
            }
        }
    }

    /// Red without: `password` in `unknown_setting`.
    #[cfg(feature = "postgres")]
    #[test]
    fn what_may_be_the_rest_of_a_password_is_not_told() {
        let url = "postgres://h1?password=s3cr3t&gehe1m";
        let error = LockManager::builder().url(url).build().unwrap_err().to_string();
        assert!(!error.contains("gehe1m") && !error.contains("s3cr3t"), "{error}");
    }
}
