//! Files with certificates and keys, checked when they are read: a mistake in them is one in the
//! program's settings, and must not look like an unavailable server.

use std::path::Path;

use redis::{ClientTlsConfig, TlsCertificates};
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use crate::Error;
use crate::lock::server_options::TlsFiles;

/// Reads the files that are set.
pub(super) fn certificates(files: &TlsFiles) -> Result<TlsCertificates, Error> {
    let provider = provider();
    let root_cert = files.ca.as_deref().map(authorities).transpose()?;
    let client_tls = match (&files.cert, &files.key) {
        (Some(cert), Some(key)) => Some(ourselves(cert, key, &provider)?),
        // `TlsFiles::check` rejects one without the other.
        _ => None,
    };
    Ok(TlsCertificates { client_tls, root_cert })
}

/// Returns the program's provider, or chooses one: rustls panics if a program contains two and none
/// was chosen.
fn provider() -> CryptoProvider {
    if CryptoProvider::get_default().is_none() {
        // If another thread chose one first, that one is used.
        let _chosen_by_another = rustls::crypto::ring::default_provider().install_default();
    }
    let chosen = CryptoProvider::get_default().map(|provider| provider.as_ref().clone());
    chosen.unwrap_or_else(rustls::crypto::ring::default_provider)
}

/// Reads the trusted authorities, in PEM.
fn authorities(path: &Path) -> Result<Vec<u8>, Error> {
    let pem = read("ca", path)?;
    let mut roots = RootCertStore::empty();
    for certificate in chain("ca", path, &pem)? {
        let added = roots.add(certificate);
        added.map_err(|_| wrong("ca", path, "has a certificate that cannot be read"))?;
    }
    Ok(pem)
}

/// Reads the client's certificate and key, in PEM.
fn ourselves(cert: &Path, key: &Path, provider: &CryptoProvider) -> Result<ClientTlsConfig, Error> {
    let (client_cert, client_key) = (read("client_cert", cert)?, read("client_key", key)?);
    let chain = chain("client_cert", cert, &client_cert)?;
    let private = PrivateKeyDer::from_pem_slice(&client_key).map_err(|_| {
        wrong("client_key", key, "has no private key in PEM (one with a passphrase cannot be used)")
    })?;
    let fits = CertifiedKey::from_der(chain, private, provider);
    fits.map_err(|_| {
        wrong("client_key", key, "is not the key to the certificate that `client_cert` names")
    })?;
    Ok(ClientTlsConfig { client_cert, client_key })
}

fn chain(name: &str, path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    // The parser's errors quote the text that they reject, which may be a key.
    let chain = chain.unwrap_or_default();
    if chain.is_empty() {
        return Err(wrong(name, path, "has no certificate in PEM"));
    }
    Ok(chain)
}

fn read(name: &str, path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|error| wrong(name, path, &format!("cannot be read: {error}")))
}

fn wrong(name: &str, path: &Path, what: &str) -> Error {
    Error::InvalidOptions(format!("`{name}={}` {what}", path.display()))
}
