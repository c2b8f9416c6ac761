//! The files of a store in the form that the Redis client takes, checked when they are read.

use redis::{ClientTlsConfig, TlsCertificates};
use rustls::crypto::CryptoProvider;

use crate::Error;
use crate::engines::tls::{authorities, identity, read};
use crate::lock::server_options::TlsFiles;

/// Reads the files that are set.
pub(super) fn certificates(files: &TlsFiles) -> Result<TlsCertificates, Error> {
    let provider = provider();
    let root_cert = files.ca.as_deref().map(|path| {
        let pem = read("ca", path)?;
        authorities(path, &pem).map(|_readable| pem)
    });
    let client_tls = match (&files.cert, &files.key) {
        (Some(cert), Some(key)) => {
            let (client_cert, client_key) = (read("client_cert", cert)?, read("client_key", key)?);
            identity((cert, &client_cert), (key, &client_key), &provider)?;
            Some(ClientTlsConfig { client_cert, client_key })
        }
        // `TlsFiles::check` rejects one without the other.
        _ => None,
    };
    Ok(TlsCertificates { client_tls, root_cert: root_cert.transpose()? })
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
