//! TLS connections: the trusted certificates, and the client's own.

#[cfg(feature = "tls")]
use rustls::pki_types::{CertificateDer, pem::PemObject};
use tonic::transport::Endpoint;
#[cfg(feature = "tls")]
use tonic::transport::{Certificate, ClientTlsConfig, Identity};

use crate::Error;
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
        if enabled && cfg!(not(feature = "tls")) {
            return Err(Error::InvalidOptions(
                "`tls=true` needs lockattr's feature `tls`: add it in Cargo.toml".into(),
            ));
        }
        let files_named = files.ca.is_some() || files.cert.is_some() || files.key.is_some();
        if files_named && !enabled {
            return Err(Error::InvalidOptions(
                "`ca`, `client_cert` and `client_key` are for a store whose URL asks for TLS: add `tls=true`"
                    .into(),
            ));
        }
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

#[cfg(feature = "tls")]
fn config(files: &TlsFiles) -> Result<ClientTlsConfig, Error> {
    let read = |name: &str, path: &std::path::Path| {
        std::fs::read(path).map_err(|error| {
            Error::InvalidOptions(format!("`{name}={}` cannot be read: {error}", path.display()))
        })
    };
    let config = match &files.ca {
        Some(ca) => {
            let pem = read("ca", ca)?;
            if CertificateDer::pem_slice_iter(&pem).next().is_none_or(|first| first.is_err()) {
                return Err(Error::InvalidOptions(format!(
                    "`ca={}` has no certificate in PEM",
                    ca.display()
                )));
            }
            ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem))
        }
        None => ClientTlsConfig::new().with_native_roots(),
    };
    match (&files.cert, &files.key) {
        (Some(cert), Some(key)) => Ok(config
            .identity(Identity::from_pem(read("client_cert", cert)?, read("client_key", key)?))),
        // `TlsFiles::check` refuses one without the other.
        _ => Ok(config),
    }
}
