//! TLS connections: the trusted certificates, and the client's own.

#[cfg(feature = "tls")]
use rustls::crypto::ring;
use tonic::transport::Endpoint;
#[cfg(feature = "tls")]
use tonic::transport::{Certificate, ClientTlsConfig, Identity};

use crate::Error;
use crate::engines::tls::check_enabled;
#[cfg(feature = "tls")]
use crate::engines::tls::{PemFiles, explained};
use crate::lock::server_options::TlsFiles;

/// The TLS settings of one store. The files were read when it was made.
pub(super) struct Tls {
    /// `None` without TLS.
    #[cfg(feature = "tls")]
    config: Option<ClientTlsConfig>,
}

impl Tls {
    /// Reads the files, if the URL asks for TLS.
    pub(super) fn read(files: &TlsFiles, enabled: bool) -> Result<Self, Error> {
        check_enabled(files, enabled)?;
        Ok(Self {
            #[cfg(feature = "tls")]
            config: enabled.then(|| config(files)).transpose()?,
        })
    }

    pub(super) fn scheme(&self) -> &'static str {
        #[cfg(feature = "tls")]
        if self.config.is_some() {
            return "https";
        }
        "http"
    }

    /// Returns the endpoint, with TLS if the URL asks for it.
    #[cfg_attr(
        not(feature = "tls"),
        expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "no TLS here")
    )]
    pub(super) fn with_tls(&self, endpoint: Endpoint) -> Result<Endpoint, Error> {
        #[cfg(feature = "tls")]
        if let Some(config) = &self.config {
            return endpoint.tls_config(config.clone()).map_err(|_| {
                Error::InvalidOptions(
                    "`ca`, `client_cert` and `client_key` must name PEM files: certificates, and the \
                     private key of `client_cert`"
                        .into(),
                )
            });
        }
        Ok(endpoint)
    }
}

/// Why TLS to the member at `address` failed, if it did.
#[cfg(feature = "tls")]
pub(super) fn refusal(address: &str, error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let host = address.rsplit_once(':').map_or(address, |(host, _port)| host);
    explained(host, error)
}

#[cfg(not(feature = "tls"))]
pub(super) fn refusal(
    _address: &str,
    _error: &(dyn std::error::Error + 'static),
) -> Option<String> {
    None
}

#[cfg(feature = "tls")]
fn config(files: &TlsFiles) -> Result<ClientTlsConfig, Error> {
    let PemFiles { ca, identity } = PemFiles::read(files, &ring::default_provider())?;
    let config = match ca {
        Some(ca) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ca)),
        None => ClientTlsConfig::new().with_native_roots(),
    };
    Ok(match identity {
        Some((cert, key)) => config.identity(Identity::from_pem(cert, key)),
        None => config,
    })
}
