//! Files with certificates and keys, checked when they are read: a mistake in them is one in the
//! program's settings, and must not look like an unavailable server.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use crate::Error;
use crate::lock::server_options::TlsFiles;

type Chain = Vec<CertificateDer<'static>>;

/// Reads the files that are set, and returns what encrypts the connections.
pub(super) fn connector(files: &TlsFiles) -> Result<TlsConnector, Error> {
    let provider = provider();
    let roots = match &files.ca {
        Some(ca) => authorities(ca)?,
        None => authorities_of_the_system(),
    };
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| {
            let sentence = format!("the program's rustls provider cannot be used: {error}");
            Error::InvalidOptions(sentence)
        })?
        .with_root_certificates(roots);
    let config = match (&files.cert, &files.key) {
        (Some(cert), Some(key)) => {
            let (chain, private) = ourselves(cert, key, &provider)?;
            config
                .with_client_auth_cert(chain, private)
                .map_err(|_| wrong("client_cert", cert, "cannot be used with its key"))?
        }
        // `TlsFiles::check` rejects one without the other.
        _ => config.with_no_client_auth(),
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Returns the provider that the program chose for its process, or `ring`. Installs none.
fn provider() -> Arc<CryptoProvider> {
    let chosen = CryptoProvider::get_default().cloned();
    chosen.unwrap_or_else(|| Arc::new(rustls::crypto::ring::default_provider()))
}

/// Returns the authorities that the system trusts. One that cannot be read is left out: it may be
/// unrelated, and a server that needs it is refused by name.
fn authorities_of_the_system() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// Reads the trusted authorities, in PEM.
fn authorities(path: &Path) -> Result<RootCertStore, Error> {
    let pem = read("ca", path)?;
    let mut roots = RootCertStore::empty();
    for certificate in chain("ca", path, &pem)? {
        let added = roots.add(certificate);
        added.map_err(|_| wrong("ca", path, "has a certificate that cannot be read"))?;
    }
    Ok(roots)
}

/// Reads the client's certificate and key, in PEM.
fn ourselves(
    cert: &Path,
    key: &Path,
    provider: &CryptoProvider,
) -> Result<(Chain, PrivateKeyDer<'static>), Error> {
    let (client_cert, client_key) = (read("client_cert", cert)?, read("client_key", key)?);
    let chain = chain("client_cert", cert, &client_cert)?;
    let private = PrivateKeyDer::from_pem_slice(&client_key).map_err(|_| {
        wrong("client_key", key, "has no private key in PEM (one with a passphrase cannot be used)")
    })?;
    let fits = CertifiedKey::from_der(chain.clone(), private.clone_key(), provider);
    fits.map_err(|_| {
        wrong("client_key", key, "is not the key to the certificate that `client_cert` names")
    })?;
    Ok((chain, private))
}

fn chain(name: &str, path: &Path, pem: &[u8]) -> Result<Chain, Error> {
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
