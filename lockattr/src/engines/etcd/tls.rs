//! TLS connections: the trusted certificates, and the client's own.

#[cfg(feature = "tls")]
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "tls")]
use rustls::{ClientConfig, crypto::ring};
#[cfg(feature = "tls")]
use tokio::io::AsyncReadExt;
use tonic::transport::Endpoint;
#[cfg(feature = "tls")]
use tonic::transport::{Certificate, ClientTlsConfig, Identity};

use crate::Error;
#[cfg(feature = "tls")]
use crate::engines::dial::dial;
use crate::engines::tls::check_enabled;
#[cfg(feature = "tls")]
use crate::engines::tls::{PemFiles, Verification, client_config, explained, secure};
use crate::lock::server_options::TlsFiles;

/// The TLS settings of one store. The files are read for each connection.
pub(super) struct Tls {
    /// `None` without TLS.
    #[cfg(feature = "tls")]
    config: Option<ClientTlsConfig>,
    /// The same, for a handshake without tonic.
    #[cfg(feature = "tls")]
    handshake: Handshake,
}

/// What asks a member why it refuses this client.
#[derive(Clone, Default)]
pub(super) struct Handshake {
    /// `None` without TLS, and for an endpoint of the program's.
    #[cfg(feature = "tls")]
    config: Option<Arc<ClientConfig>>,
    #[cfg(feature = "tls")]
    files: TlsFiles,
}

impl Handshake {
    /// The endpoint with what the files have now: tonic reads none. What cannot be used, because only one of
    /// two files is replaced so far, leaves what the store was made with.
    #[cfg_attr(not(feature = "tls"), expect(clippy::unused_self, reason = "no TLS here"))]
    pub(super) fn renewed(&self, endpoint: &Endpoint) -> Endpoint {
        #[cfg(feature = "tls")]
        if self.config.is_some() {
            let renewed = config(&self.files).ok();
            let renewed = renewed.and_then(|config| endpoint.clone().tls_config(config).ok());
            return renewed.unwrap_or_else(|| endpoint.clone());
        }
        endpoint.clone()
    }

    /// Why the member at `address` closes connections after the handshake, if it reports that.
    ///
    /// With TLS 1.3, a server judges the client's certificate when the client already sends. If
    /// that meets a closed connection, the server's reason is lost. So this handshake only reads.
    #[cfg(feature = "tls")]
    pub(super) async fn refusal(&self, address: &str, limit: Duration) -> Option<String> {
        let config = self.config.clone()?;
        let host = host(address);
        let port = address.rsplit_once(':')?.1.parse().ok()?;
        let stream = dial(host, port, limit).await.ok()?;
        match secure(stream, (host, Verification::Full), config).await {
            Ok(mut stream) => explained(host, &stream.read_u8().await.err()?),
            Err(error) => Some(error.to_string()),
        }
    }

    #[cfg(not(feature = "tls"))]
    #[expect(clippy::unused_async, reason = "no TLS here")]
    pub(super) async fn refusal(&self, _address: &str, _limit: Duration) -> Option<String> {
        None
    }
}

impl Tls {
    /// Reads the files, if the URL asks for TLS.
    pub(super) fn read(files: &TlsFiles, enabled: bool) -> Result<Self, Error> {
        check_enabled(files, enabled)?;
        Ok(Self {
            #[cfg(feature = "tls")]
            config: enabled.then(|| config(files)).transpose()?,
            #[cfg(feature = "tls")]
            handshake: Handshake {
                config: enabled
                    .then(|| client_config(files, Verification::Full).map(Arc::new))
                    .transpose()?,
                files: files.clone(),
            },
        })
    }

    #[cfg_attr(not(feature = "tls"), expect(clippy::unused_self, reason = "no TLS here"))]
    pub(super) fn handshake(&self) -> Handshake {
        #[cfg(feature = "tls")]
        return self.handshake.clone();
        #[cfg(not(feature = "tls"))]
        return Handshake::default();
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
    explained(host(address), error)
}

#[cfg(feature = "tls")]
fn host(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _port)| host);
    host.trim_start_matches('[').trim_end_matches(']')
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
