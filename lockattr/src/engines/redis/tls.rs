//! TLS connections: which authorities are trusted, and which certificate is presented.
//!
//! The Redis client would do this with a cryptography provider for the whole process, which it
//! installs if the program has not. So the store encrypts its connections itself, with a provider of
//! its own. Only a client that the program made with TLS is left as it is.

#[cfg(feature = "tls")]
mod handshake;

#[cfg(feature = "tls")]
use std::sync::Arc;

#[cfg(feature = "tls")]
use tokio_rustls::TlsConnector;

use crate::Error;
#[cfg(feature = "tls")]
use crate::engines::tls::{Verification, client_config};
use crate::lock::server_options::TlsFiles;
#[cfg(feature = "tls")]
pub(super) use handshake::begin;

/// How the connections of one store are secured. The files are read for each connection.
#[derive(Clone)]
pub(super) struct Tls {
    /// `None` without TLS, and for a client that has its own.
    #[cfg(feature = "tls")]
    connector: Option<TlsConnector>,
}

/// Returns whether a URL asks for TLS: by its scheme, or by `tls=true` if it names several hosts.
pub(in crate::engines) fn uses_tls(scheme: &str, setting: Option<&str>) -> Result<bool, Error> {
    match setting {
        None => Ok(scheme == "rediss"),
        Some("false") => Ok(false),
        Some("true") if cfg!(feature = "tls") => Ok(true),
        Some("true") => Err(Error::InvalidOptions(
            "`tls=true` needs lockattr's feature `tls`: add it in Cargo.toml".into(),
        )),
        Some(_) => {
            Err(Error::InvalidOptions("`tls` in the URL is neither `true` nor `false`".into()))
        }
    }
}

impl Tls {
    /// Reads the files. `encrypted` says whether the URL asks for TLS, which needs the feature
    /// `tls`.
    pub(super) fn read(files: &TlsFiles, encrypted: bool) -> Result<Self, Error> {
        if let Some((name, _)) = files.named().next().filter(|_| !encrypted) {
            return Err(Error::InvalidOptions(format!(
                "`{name}` is for a store whose URL asks for TLS, such as `rediss://`"
            )));
        }
        Ok(Self {
            #[cfg(feature = "tls")]
            connector: encrypted.then(|| connector(files)).transpose()?,
        })
    }

    /// No TLS but what a client of the program's does itself.
    pub(super) fn none() -> Self {
        Self {
            #[cfg(feature = "tls")]
            connector: None,
        }
    }

    /// Whether this encrypts the connections, whatever the address says of it.
    #[cfg_attr(not(feature = "tls"), expect(clippy::unused_self, reason = "no TLS here"))]
    pub(super) fn is_ours(&self) -> bool {
        #[cfg(feature = "tls")]
        return self.connector.is_some();
        #[cfg(not(feature = "tls"))]
        return false;
    }

    #[cfg(feature = "tls")]
    pub(super) fn connector(&self) -> Option<&TlsConnector> {
        self.connector.as_ref()
    }
}

#[cfg(feature = "tls")]
fn connector(files: &TlsFiles) -> Result<TlsConnector, Error> {
    Ok(TlsConnector::from(Arc::new(client_config(files, Verification::Full)?)))
}

#[cfg(all(test, feature = "tls"))]
mod tests {
    use rustls::crypto::CryptoProvider;

    use super::*;

    /// The choice for the whole process is the program's.
    #[test]
    fn a_store_with_tls_chooses_no_provider_for_the_process() {
        let url = "rediss://db.example/";
        let store = crate::store::RedisStore::open(url).unwrap();
        assert!(CryptoProvider::get_default().is_none(), "{store:?}");
        assert!(Tls::read(&TlsFiles::default(), true).unwrap().connector.is_some());
        assert!(CryptoProvider::get_default().is_none());
    }
}
