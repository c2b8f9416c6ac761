//! The settings in a `redis+sentinel://` URL.

use std::sync::Arc;

use percent_encoding::percent_decode_str;
use url::Url;

use super::Sentinels;
use crate::Error;
use crate::engines::redis::config::endpoint;
use crate::engines::redis::tls::Tls;
use crate::lock::server_options::ServerOptions;

/// The port of a sentinel if the URL names none.
const PORT: u16 = 26379;

impl Sentinels {
    /// Reads a URL. `urls` has one for each host; `own` has the settings that other stores do not
    /// have.
    pub(in crate::engines::redis) fn read(
        urls: &[Url],
        own: &[(&str, &str)],
        address: &str,
        timing: &ServerOptions,
        tls: &Tls,
    ) -> Result<Arc<Self>, Error> {
        let setting =
            |option| own.iter().find(|(name, _)| *name == option).map(|(_, value)| *value);
        let name = master_name(&urls[0])?;
        let database: u32 = setting("db").unwrap_or("0").parse().map_err(|_| {
            refused("`db` in the URL is not a whole number in range: leave it out for 0")
        })?;
        // The sentinels report the host, so any host will do here.
        let template = other(&urls[0], &format!("/{database}"))?;
        let (user, pass) = (setting("sentinel_user"), setting("sentinel_pass"));
        if user.is_some() && pass.is_none() {
            return Err(refused("`sentinel_user` needs `sentinel_pass`"));
        }
        let mut endpoints = Vec::new();
        for url in urls {
            if url.host_str().is_none_or(str::is_empty) {
                return Err(refused(
                    "a host is missing: write it like `redis+sentinel://h1,h2,h3/master-name`",
                ));
            }
            let mut sentinel = other(url, "")?;
            // A URL with a host accepts all three.
            let set = sentinel
                .set_username(user.unwrap_or_default())
                .and_then(|()| sentinel.set_password(pass))
                .and_then(|()| sentinel.set_port(Some(url.port().unwrap_or(PORT))));
            set.map_err(|()| refused("a host of the URL cannot be read"))?;
            endpoints.push(endpoint(sentinel, address, tls.clone())?);
        }
        let template = endpoint(template, address, tls.clone())?;
        Ok(Self::new(endpoints, name, template, address, timing))
    }
}

/// Returns the URL with the scheme `redis` and this path.
fn other(url: &Url, path: &str) -> Result<Url, Error> {
    let mut other = url.clone();
    other.set_scheme("redis").map_err(|()| refused("the URL cannot be read"))?;
    other.set_path(path);
    Ok(other)
}

fn master_name(url: &Url) -> Result<String, Error> {
    let path = url.path().strip_prefix('/').unwrap_or_default();
    if path.is_empty() || path.contains('/') {
        return Err(refused(
            "after the sentinels' hosts, the URL names the master and nothing else: write it \
             like `redis+sentinel://h1,h2,h3/master-name`",
        ));
    }
    let name = percent_decode_str(path).decode_utf8();
    Ok(name.map_err(|_| refused("the master's name in the URL is not UTF-8"))?.into_owned())
}

fn refused(sentence: &str) -> Error {
    Error::InvalidOptions(sentence.into())
}
