//! Logs in: as the URL or the program's own configuration says, or with the credentials that a
//! provider returns for each connection.

use futures_util::TryFutureExt;
use mysql_async::{Conn, Error, Opts, OptsBuilder};

use super::config::Config;
use super::connect::{error_from, within};
#[cfg(unix)]
use super::login_check::Passwords;
#[cfg(unix)]
use super::relay::Greeted;
use super::tls::{CAN_RELAY, Tls};
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

impl Login {
    /// Opens a connection of a store with these settings. The server and the provider have
    /// `connect_timeout` each, so that the error names the one that did not answer.
    pub(super) async fn connect(&self, config: &Config) -> Result<Conn, StoreError> {
        let (address, limit) = (config.address.as_str(), config.timing.connect_timeout);
        let failed = |failure| match failure {
            Failure::Client(error) => error_from(address, error),
            Failure::Relay(error) => error,
        };
        let Some(provider) = &self.credentials else {
            let opening = self.open(self.opts.clone(), address).map_err(failed);
            return within(config, limit, opening).await;
        };
        let first = provider.current(address, limit).await?;
        let opened = async { Ok(self.open(self.opts_with(&first), address).await) };
        match within(config, limit, opened).await? {
            Err(Failure::Client(Error::Server(refused))) if refused.code == ACCESS_DENIED => {
                // The password may have changed on its way to the server.
                let second = provider.current(address, limit).await?;
                if second == first {
                    return Err(failed(Failure::Client(Error::Server(refused))).not_sent());
                }
                let opening = self.open(self.opts_with(&second), address).map_err(failed);
                within(config, limit, opening).await
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

    async fn open(&self, opts: Opts, address: &str) -> Result<Conn, Failure> {
        // The program's own configuration may encrypt, or use a socket.
        let is_relayed = opts.ssl_opts().is_none() && opts.socket().is_none();
        if !is_relayed {
            return Conn::new(opts).await.map_err(Failure::Client);
        }
        let is_remote = plaintext::is_remote(opts.ip_or_hostname());
        // The URL does not say that the network is the caller's own.
        let is_guarded = is_remote && self.tls.is_preferred;
        #[cfg(unix)]
        if CAN_RELAY {
            let greeted = Greeted::connect(&opts).await;
            let server = greeted.map_err(|error| Failure::Client(error.into()))?;
            #[cfg(feature = "tls")]
            if let Some((config, verification)) = &self.tls.config {
                if server.offers_tls() {
                    let tls = (config.clone(), *verification);
                    return server.open(opts, address, Passwords::Encrypted, Some(tls)).await;
                }
                if self.tls.is_required {
                    return Err(Failure::Relay(StoreError::new(format!(
                        "{address} offers no TLS, and `ssl-mode` requires it: give the server a \
                         certificate (`ssl_cert`, `ssl_key`), or write `ssl-mode=disabled`"
                    ))));
                }
            }
            warn(is_remote, address);
            if is_guarded {
                return server.open(opts, address, Passwords::Never, None).await;
            }
            if server.try_login(&opts, address).await? {
                return Conn::new(opts).await.map_err(Failure::Client);
            }
            let greeted = Greeted::connect(&opts).await;
            let server = greeted.map_err(|error| Failure::Client(error.into()))?;
            return server.open(opts, address, Passwords::Never, None).await;
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
        Conn::new(opts).await.map_err(Failure::Client)
    }
}

/// Before the login, whose packets the warning is about.
fn warn(is_remote: bool, address: &str) {
    if is_remote {
        let advice = "add `ssl-mode=verify_identity` to the URL (with the feature `tls`)";
        plaintext::warn_once(address, advice);
    }
}
