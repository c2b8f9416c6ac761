//! The client's side of TLS for one store.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{CryptoProvider, ring};
use rustls::{ClientConfig, RootCertStore};

use super::current::{Authorities, Identity};
use super::verification::{Partial, full};
use super::{Verification, authorities};
use crate::Error;
use crate::lock::server_options::TlsFiles;

/// Reads the files of a store, and returns the settings of its connections, each of which reads them again.
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
    let identity = Identity::of(files, &provider)?;
    let has_files = files.ca.is_some() || identity.is_some();
    let mut config = match identity {
        Some(identity) => builder.with_client_cert_resolver(Arc::new(identity)),
        None => builder.with_no_client_auth(),
    };
    if has_files {
        // A resumed session would be that of the certificates of before.
        config.resumption = Resumption::disabled();
    }
    Ok(config)
}

fn verifier(
    files: &TlsFiles,
    verification: Verification,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, Error> {
    let provider = provider.clone();
    let with = move |roots: Arc<RootCertStore>| -> Result<Arc<dyn ServerCertVerifier>, Error> {
        let provider = provider.clone();
        Ok(match verification {
            Verification::None => Arc::new(Partial { roots: None, provider }),
            Verification::Chain => Arc::new(Partial { roots: Some(roots), provider }),
            Verification::Full => full(roots, provider).map_err(|error| unusable(&error))?,
        })
    };
    match &files.ca {
        _ if verification == Verification::None => with(Arc::new(RootCertStore::empty())),
        Some(ca) => Ok(Arc::new(Authorities::of(ca.clone(), Box::new(with))?)),
        None => with(authorities::of_the_system()?),
    }
}

fn unusable(error: &dyn std::error::Error) -> Error {
    Error::InvalidOptions(format!("TLS cannot be set up: {error}"))
}
