//! The settings in an etcd URL: members, credentials and timeouts.

use std::sync::Arc;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tonic::transport::Endpoint;
use url::Url;

use super::tls::Handshake;
use crate::Error;
use crate::engines::plaintext;
use crate::engines::tls::yes_or_no;
use crate::lock::server_options::ServerOptions;
use crate::lock::settings::duration;
use crate::store::url::{shown, unknown_setting};

/// The settings of one store.
#[derive(Clone)]
pub(super) struct Config {
    pub(super) members: Vec<Member>,
    /// The URL without its password, for errors.
    pub(super) address: String,
    pub(super) login: Option<Login>,
    pub(super) timing: ServerOptions,
    /// How long the servers keep the entries of a process that they no longer hear from: the TTL of
    /// its lease, in whole seconds.
    pub(super) session_timeout: Duration,
}

/// A server of the cluster.
#[derive(Clone)]
pub(super) struct Member {
    pub(super) endpoint: Endpoint,
    pub(super) address: Arc<str>,
    pub(super) handshake: Handshake,
}

/// The credentials, if the servers require them.
#[derive(Clone)]
pub(super) struct Login {
    pub(super) user: String,
    pub(super) password: String,
}

/// etcd's default port.
const PORT: u16 = 2379;

/// Long enough for a lease of ten seconds, which is the default.
const SESSION_TIMEOUT: Duration = Duration::from_secs(20);

/// The servers lengthen a shorter one to their minimum, one and a half election timeouts.
const SHORTEST: Duration = Duration::from_secs(2);

/// After a crash, a lock stays held for that long.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

const NAMES: &str = ", and for etcd `session_timeout`, `connect_timeout`, `response_timeout`, \
                     `heartbeat`, `tls`, with `tls=true` also `ca`, `client_cert`, `client_key`";

impl Config {
    pub(super) fn read(
        urls: &[Url],
        query: &[(String, String)],
        mut timing: ServerOptions,
    ) -> Result<Self, Error> {
        let (mut session_timeout, mut tls) = (SESSION_TIMEOUT, false);
        for (name, value) in query {
            match name.as_str() {
                "session_timeout" => session_timeout = duration(name, value)?,
                "connect_timeout" => timing.connect_timeout = duration(name, value)?,
                "response_timeout" => timing.response_timeout = duration(name, value)?,
                "heartbeat" => timing.heartbeat = duration(name, value)?,
                "tls" => tls = yes_or_no(value)?,
                "ca" => timing.tls.ca = Some(value.into()),
                "client_cert" | "cert" => timing.tls.cert = Some(value.into()),
                "client_key" | "key" => timing.tls.key = Some(value.into()),
                _ => return Err(unknown_setting(query, name, NAMES)),
            }
        }
        timing.check()?;
        check_session_timeout(session_timeout)?;
        let address = shown(urls);
        let tls = super::tls::Tls::read(&timing.tls, tls)?;
        let members = urls.iter().map(|url| member(url, &address, &tls));
        let members = members.collect::<Result<_, _>>()?;
        let login = login(&urls[0], &address)?;
        Ok(Self { members, address, login, timing, session_timeout })
    }

    /// Takes the members of the program's own client.
    pub(super) fn of_endpoints(
        endpoints: impl IntoIterator<Item = Endpoint>,
        timing: ServerOptions,
    ) -> Result<Self, Error> {
        timing.check()?;
        let members: Vec<_> = endpoints.into_iter().map(Member::of_endpoint).collect();
        if members.is_empty() {
            return Err(Error::InvalidOptions(
                "an `EtcdStore` needs an `Endpoint` for each member of the cluster, and got none"
                    .into(),
            ));
        }
        let hosts: Vec<_> = members.iter().map(|member| &*member.address).collect();
        let address = format!("etcd://{}/", hosts.join(","));
        Ok(Self { members, address, login: None, timing, session_timeout: SESSION_TIMEOUT })
    }

    pub(super) fn with_session_timeout(&self, session_timeout: Duration) -> Result<Self, Error> {
        check_session_timeout(session_timeout)?;
        Ok(Self { session_timeout, ..self.clone() })
    }

    /// Says in the log that the connections to another machine are not encrypted.
    pub(super) fn warn_about_plaintext(&self) {
        let is_remote_plaintext = |member: &Member| {
            let uri = member.endpoint.uri();
            uri.scheme_str() != Some("https") && uri.host().is_some_and(plaintext::is_remote)
        };
        if self.members.iter().any(is_remote_plaintext) {
            plaintext::warn_once(&self.address, "add `tls=true` to the URL");
        }
    }
}

impl Member {
    fn of_endpoint(endpoint: Endpoint) -> Self {
        let uri = endpoint.uri();
        // The authority may hold a login, which gRPC does not use.
        let address = match (uri.host(), uri.port_u16()) {
            (Some(host), Some(port)) => format!("{host}:{port}"),
            (Some(host), None) => host.to_owned(),
            (None, _) => uri.path().to_owned(),
        };
        Self { endpoint, address: address.into(), handshake: Handshake::default() }
    }
}

fn check_session_timeout(session_timeout: Duration) -> Result<(), Error> {
    let range = SHORTEST..=LONGEST;
    if !range.contains(&session_timeout) || session_timeout.subsec_nanos() != 0 {
        return Err(Error::InvalidOptions(
            "`session_timeout` must be 2s to one day in whole seconds: etcd counts it in those"
                .into(),
        ));
    }
    Ok(())
}

fn member(url: &Url, address: &str, tls: &super::tls::Tls) -> Result<Member, Error> {
    let wrong = |what: &str| Error::InvalidOptions(format!("the etcd URL {address} {what}"));
    if !matches!(url.path(), "" | "/") {
        return Err(wrong("has a path, and etcd has none: `prefix=` keeps applications apart"));
    }
    let host = url.host_str().filter(|host| !host.is_empty());
    let host = host.ok_or_else(|| wrong("names no host: write it like `etcd://127.0.0.1/`"))?;
    let at = format!("{host}:{}", url.port().unwrap_or(PORT));
    let endpoint = Endpoint::from_shared(format!("{}://{at}", tls.scheme()));
    let endpoint = endpoint.map_err(|_| wrong("has an invalid host"))?;
    let endpoint = tls.with_tls(endpoint)?;
    Ok(Member { endpoint, address: at.into(), handshake: tls.handshake() })
}

fn login(url: &Url, address: &str) -> Result<Option<Login>, Error> {
    let plain = |text: &str| Some(percent_decode_str(text).decode_utf8().ok()?.into_owned());
    match (url.username(), url.password()) {
        ("", None) => Ok(None),
        (user, Some(password)) if !user.is_empty() => {
            let login = plain(user).zip(plain(password));
            let login = login.ok_or_else(|| {
                Error::InvalidOptions(format!("the login in the etcd URL {address} is not UTF-8"))
            })?;
            Ok(Some(Login { user: login.0, password: login.1 }))
        }
        _ => Err(Error::InvalidOptions(format!(
            "the etcd URL {address} has only half a login: write both, like `user:password@`"
        ))),
    }
}
