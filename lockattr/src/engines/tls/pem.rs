//! Files with certificates and keys, checked when they are read: a mistake in them is one in the
//! program's settings, and must not look like an unavailable server.

use std::path::Path;

use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use crate::Error;
use crate::lock::server_options::TlsFiles;

/// What the files of a store hold.
pub(in crate::engines) struct PemFiles {
    pub(in crate::engines) ca: Option<Vec<u8>>,
    /// The client's certificate and its key.
    pub(in crate::engines) identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl PemFiles {
    /// Reads and checks the files, for a client that parses them itself.
    pub(in crate::engines) fn read(
        files: &TlsFiles,
        provider: &CryptoProvider,
    ) -> Result<Self, Error> {
        let mut found = Self { ca: None, identity: None };
        if let Some(ca) = &files.ca {
            authorities(ca)?;
            found.ca = Some(read("ca", ca)?);
        }
        // `TlsFiles::check` rejects one without the other.
        if let (Some(cert), Some(key)) = (&files.cert, &files.key) {
            identity(cert, key, provider)?;
            found.identity = Some((read("client_cert", cert)?, read("client_key", key)?));
        }
        Ok(found)
    }
}

/// Reads the trusted authorities of the file that the setting `ca` names.
pub(super) fn authorities(path: &Path) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in chain("ca", path, &read("ca", path)?)? {
        let added = roots.add(certificate);
        added.map_err(|_| wrong("ca", path, "has a certificate that cannot be read"))?;
    }
    Ok(roots)
}

/// Reads the client's certificate and its key.
pub(super) fn identity(
    cert: &Path,
    key: &Path,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, Error> {
    let (cert_pem, key_pem) = (read("client_cert", cert)?, read("client_key", key)?);
    let chain = chain("client_cert", cert, &cert_pem)?;
    let private = PrivateKeyDer::from_pem_slice(&key_pem).map_err(|_| {
        wrong("client_key", key, "has no private key in PEM (one with a passphrase cannot be used)")
    })?;
    CertifiedKey::from_der(chain, private, provider).map_err(|_| {
        wrong("client_key", key, "is not the key to the certificate that `client_cert` names")
    })
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

/// Reads the file that a setting names.
fn read(name: &str, path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|error| wrong(name, path, &format!("cannot be read: {error}")))
}

fn wrong(name: &str, path: &Path, what: &str) -> Error {
    Error::InvalidOptions(format!("`{name}={}` {what}", path.display()))
}
