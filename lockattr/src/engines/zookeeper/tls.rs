//! Whether a store's connections are encrypted, and how its client reaches the servers then.

use std::net::SocketAddr;
#[cfg(feature = "tls")]
use std::sync::Arc;

#[cfg(feature = "tls")]
use rustls::ClientConfig;
use zookeeper_client::Connector;

use super::config::Config;
use super::reach::list;
#[cfg(feature = "tls")]
use super::relay::Relay;
use crate::Error;
use crate::engines::tls::check_enabled;
#[cfg(feature = "tls")]
use crate::engines::tls::{Verification, client_config};
use crate::lock::server_options::TlsFiles;
use crate::store::StoreError;

/// The TLS settings of one store. The files are read for each connection.
#[derive(Clone, Default)]
pub(super) struct Tls {
    /// `None` without TLS, and for a connector that has its own.
    #[cfg(feature = "tls")]
    config: Option<Arc<ClientConfig>>,
    #[cfg(feature = "tls")]
    relay: Option<Arc<Relay>>,
}

impl Tls {
    /// Reads the files, if the URL asks for TLS.
    pub(super) fn read(files: &TlsFiles, enabled: bool) -> Result<Self, Error> {
        check_enabled(files, enabled)?;
        #[cfg(feature = "tls")]
        if enabled {
            let config = Arc::new(client_config(files, Verification::Full)?);
            return Ok(Self { config: Some(config), relay: None });
        }
        Ok(Self::default())
    }

    #[cfg_attr(not(feature = "tls"), expect(clippy::unused_self, reason = "no TLS here"))]
    pub(super) fn is_enabled(&self) -> bool {
        #[cfg(feature = "tls")]
        return self.config.is_some();
        #[cfg(not(feature = "tls"))]
        return false;
    }
}

#[cfg(feature = "tls")]
impl Config {
    /// The same settings for one store, which has a relay of its own.
    pub(super) fn with_relay(mut self) -> Self {
        let limits = (self.connect_timeout, self.silence_limit());
        let relay = |config| Relay::new(&self.hosts, config, limits);
        self.tls.relay = self.tls.config.clone().map(relay);
        self
    }

    /// Returns what the client connects with, and the addresses of the servers as it sees them.
    pub(super) fn reach(
        &self,
        found: &[Option<SocketAddr>],
    ) -> Result<(Connector, Vec<String>), StoreError> {
        let connector = self.connector.clone();
        Ok(match &self.tls.relay {
            Some(relay) => {
                let ports = relay.hosts(found)?;
                (relay.admitted(connector), list(ports, &vec![None; found.len()]))
            }
            None => (connector, list(self.hosts.clone(), found)),
        })
    }

    /// Why no session was opened, if TLS was the reason.
    pub(super) fn tls_refusal(&self) -> Option<StoreError> {
        self.tls.relay.as_ref()?.refusal().map(StoreError::not_sent)
    }
}

#[cfg(not(feature = "tls"))]
#[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "no TLS here")]
impl Config {
    pub(super) fn with_relay(self) -> Self {
        self
    }

    pub(super) fn reach(
        &self,
        found: &[Option<SocketAddr>],
    ) -> Result<(Connector, Vec<String>), StoreError> {
        Ok((self.connector.clone(), list(self.hosts.clone(), found)))
    }

    pub(super) fn tls_refusal(&self) -> Option<StoreError> {
        None
    }
}

#[cfg(all(test, feature = "tls"))]
mod tests {
    use rustls::crypto::CryptoProvider;

    /// The choice for the whole process is the program's.
    #[test]
    fn a_store_with_tls_chooses_no_provider_for_the_process() {
        let url = "zookeeper://zk.example:2281?tls=true";
        let store = crate::store::ZookeeperStore::open(url).unwrap();
        assert!(CryptoProvider::get_default().is_none(), "{store:?}");
    }
}
