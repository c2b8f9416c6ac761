//! Logs in: as the URL or the program's own configuration says, or with the credentials that a
//! provider returns for each connection.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::TryFutureExt;
use mysql_async::{Conn, Error, IoError, Opts, OptsBuilder};
use tokio::time::timeout;

use super::config::Config;
use super::connect::error_from;
#[cfg(unix)]
use super::login_check::Passwords;
#[cfg(unix)]
use super::relay::Greeted;
use super::tls::{CAN_RELAY, Tls};
use crate::engines::dial::{handshake_limit, lookup, no_answer, reachable_of};
use crate::engines::plaintext;
use crate::lock::credentials::CredentialsProvider;
use crate::store::{Credentials, StoreError};

/// The server's code for a user that it does not know, or a wrong password.
const ACCESS_DENIED: u16 = 1045;

#[derive(Clone)]
pub(super) struct Login {
    pub(super) opts: Opts,
    pub(super) credentials: Option<CredentialsProvider>,
    pub(super) tls: Tls,
}

/// Why a connection was not opened.
pub(super) enum Failure {
    Client(Error),
    Relay(StoreError),
}

/// The outcome of a step in which the server has to answer.
async fn in_time<T>(
    limit: Duration,
    step: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    timeout(limit, step).await.unwrap_or_else(|_| Err(Failure::Client(no_answer(limit).into())))
}

impl Login {
    /// Opens a connection of a store with these settings.
    pub(super) async fn connect(&self, config: &Config) -> Result<Conn, StoreError> {
        let (address, limit) = (config.address.as_str(), config.timing.connect_timeout);
        let failed = |failure| match failure {
            Failure::Client(error) => error_from(address, error),
            Failure::Relay(error) => error,
        };
        let Some(provider) = &self.credentials else {
            let opened = self.open(self.opts.clone(), address, limit).await;
            return opened.map_err(|failure| failed(failure).not_sent());
        };
        let first = provider.current(address, limit).await?;
        match self.open(self.opts_with(&first), address, limit).await {
            Err(Failure::Client(Error::Server(refused))) if refused.code == ACCESS_DENIED => {
                // The password may have changed on its way to the server.
                let second = provider.current(address, limit).await?;
                if second == first {
                    return Err(failed(Failure::Client(Error::Server(refused))).not_sent());
                }
                let opened = self.open(self.opts_with(&second), address, limit).await;
                opened.map_err(|failure| failed(failure).not_sent())
            }
            opened => opened.map_err(|failure| failed(failure).not_sent()),
        }
    }

    fn opts_with(&self, credentials: &Credentials) -> Opts {
        let mut opts = OptsBuilder::from_opts(self.opts.clone()).pass(Some(credentials.password()));
        if let Some(user) = credentials.user() {
            opts = opts.user(Some(user));
        }
        opts.into()
    }

    /// `limit` is for one attempt at one address.
    async fn open(&self, opts: Opts, address: &str, limit: Duration) -> Result<Conn, Failure> {
        // The program's own configuration may use a socket, or encrypt.
        if opts.socket().is_some() {
            let opening = Conn::new(opts).map_err(Failure::Client);
            return in_time(handshake_limit(limit), opening).await;
        }
        if opts.ssl_opts().is_none()
            && let Some(connection) = self.open_checked(&opts, address, limit).await?
        {
            return Ok(connection);
        }
        open_directly(opts, limit).await
    }

    /// Opens a connection whose login is checked. `None` if the client may connect by itself.
    async fn open_checked(
        &self,
        opts: &Opts,
        address: &str,
        limit: Duration,
    ) -> Result<Option<Conn>, Failure> {
        let is_remote = plaintext::is_remote(opts.ip_or_hostname());
        // The URL does not say that the network is the caller's own.
        let is_guarded = is_remote && self.tls.is_preferred;
        #[cfg(unix)]
        if CAN_RELAY {
            let greeted = async || {
                Greeted::connect(opts, limit).await.map_err(|error| Failure::Client(error.into()))
            };
            let server = greeted().await?;
            // TLS, and then the login.
            let limit = handshake_limit(limit).saturating_mul(2);
            #[cfg(feature = "tls")]
            if let Some((config, verification)) = &self.tls.config {
                if server.offers_tls() {
                    let tls = Some((config.clone(), *verification));
                    let opening = server.open(opts.clone(), address, Passwords::Encrypted, tls);
                    return in_time(limit, opening).await.map(Some);
                }
                if self.tls.is_required {
                    return Err(Failure::Relay(StoreError::new(format!(
                        "{address} offers no TLS, and `ssl-mode` requires it: give the server a \
                         certificate (`ssl_cert`, `ssl_key`), or write `ssl-mode=disabled`"
                    ))));
                }
            }
            warn(is_remote, address);
            if is_remote {
                let passwords = if is_guarded { Passwords::Never } else { Passwords::ByKey };
                let opening = server.open(opts.clone(), address, passwords, None);
                return in_time(limit, opening).await.map(Some);
            }
            // A server on this machine is worth a login more: its connections need no relay then.
            if in_time(limit, server.try_login(opts, address)).await? {
                return Ok(None);
            }
            let opening = greeted().await?.open(opts.clone(), address, Passwords::Never, None);
            return in_time(limit, opening).await.map(Some);
        }
        warn(is_remote, address);
        if is_guarded && opts.pass().is_some() {
            return Err(Failure::Relay(StoreError::new(format!(
                "{address}: {}",
                "`mysql://` has no TLS on this system, so others on the network could read the \
                 password: connect through a tunnel, or write `ssl-mode=disabled` if the network is \
                 your own"
            ))));
        }
        Ok(None)
    }
}

/// Lets the client connect by itself.
async fn open_directly(opts: Opts, limit: Duration) -> Result<Conn, Failure> {
    let failed = |error: io::Error| Failure::Client(error.into());
    let addresses = addresses(&opts).await.map_err(failed)?;
    let found = reachable_of(addresses, limit).await.map_err(failed)?;
    let opts = OptsBuilder::from_opts(opts).resolved_ips(Some(vec![found.ip()]));
    // The client connects and logs in, in one step.
    let limit = limit.saturating_add(handshake_limit(limit));
    let opened = in_time(limit, Conn::new(opts).map_err(Failure::Client)).await;
    opened.map_err(|failure| match failure {
        Failure::Client(Error::Io(IoError::Io(error))) => {
            failed(io::Error::new(error.kind(), format!("{found}: {error}")))
        }
        failure => failure,
    })
}

/// The server's addresses: those that the program chose, or those of its name.
pub(super) async fn addresses(opts: &Opts) -> io::Result<Vec<SocketAddr>> {
    let port = opts.tcp_port();
    match opts.resolved_ips() {
        Some(ips) => Ok(ips.iter().map(|ip| SocketAddr::new(*ip, port)).collect()),
        None => lookup(opts.ip_or_hostname(), port).await,
    }
}

/// Before the login, whose packets the warning is about.
fn warn(is_remote: bool, address: &str) {
    if is_remote {
        let advice = "add `ssl-mode=verify_identity` to the URL (with the feature `tls`)";
        plaintext::warn_once(address, advice);
    }
}
