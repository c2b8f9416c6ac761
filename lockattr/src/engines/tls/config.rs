//! The client's side of TLS for one store.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{CryptoProvider, ring};
use rustls::sign::SingleCertAndKey;

use super::verification::{Partial, full};
use super::{Verification, authorities, pem};
use crate::Error;
use crate::lock::server_options::TlsFiles;

/// Reads the files of a store, and returns the settings of its connections.
///
/// The provider is given, not looked up: rustls panics if a program contains two and none was
/// chosen for the process.
pub(in crate::engines) fn client_config(
    files: &TlsFiles,
    verification: Verification,
) -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone());
    let builder =
        builder.with_safe_default_protocol_versions().map_err(|error| unusable(&error))?;
    let verifier = verifier(files, verification, &provider)?;
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    let (Some(cert), Some(key)) = (&files.cert, &files.key) else {
        // `TlsFiles::check` rejects one without the other.
        return Ok(builder.with_no_client_auth());
    };
    let (cert_pem, key_pem) = (pem::read("client_cert", cert)?, pem::read("client_key", key)?);
    let identity = pem::identity((cert, &cert_pem), (key, &key_pem), &provider)?;
    Ok(builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(identity))))
}

fn verifier(
    files: &TlsFiles,
    verification: Verification,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, Error> {
    let roots = || authorities::trusted(files.ca.as_deref());
    let provider = provider.clone();
    Ok(match verification {
        Verification::None => Arc::new(Partial { roots: None, provider }),
        Verification::Chain => Arc::new(Partial { roots: Some(roots()?), provider }),
        Verification::Full => full(roots()?, provider).map_err(|error| unusable(&error))?,
    })
}

fn unusable(error: &dyn std::error::Error) -> Error {
    Error::InvalidOptions(format!("TLS cannot be set up: {error}"))
}
