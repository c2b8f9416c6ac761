//! Certificates as the files have them now: each handshake reads them again, so that the next connection
//! has what was rotated meanwhile.
//!
//! The files have a few kilobytes, which the system keeps in memory, and a store has few connections: a
//! handshake computes for longer than this takes. What cannot be used, because only one of two files is
//! replaced so far, leaves what was read before, with a warning.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::ResolvesClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::pem;
use crate::Error;
use crate::lock::server_options::TlsFiles;
use crate::platform::sync::Mutex;

/// The client's certificate, and its key.
#[derive(Debug)]
pub(super) struct Identity {
    cert: PathBuf,
    key: PathBuf,
    provider: Arc<CryptoProvider>,
    last: Mutex<Arc<CertifiedKey>>,
}

impl Identity {
    /// Reads the files for the first time. `None` if the client has no certificate.
    pub(super) fn of(
        files: &TlsFiles,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Option<Self>, Error> {
        // `TlsFiles::check` rejects one without the other.
        let (Some(cert), Some(key)) = (&files.cert, &files.key) else { return Ok(None) };
        let last = Mutex::new(Arc::new(pem::identity(cert, key, provider)?));
        let (cert, key, provider) = (cert.clone(), key.clone(), provider.clone());
        Ok(Some(Self { cert, key, provider, last }))
    }
}

impl ResolvesClientCert for Identity {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let read = pem::identity(&self.cert, &self.key, &self.provider);
        Some(current(&self.last, read.map(Arc::new)))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

type Verifier = Arc<dyn ServerCertVerifier>;
type Verify = dyn Fn(Arc<RootCertStore>) -> Result<Verifier, Error> + Send + Sync;

/// Verifies servers by the authorities of a file.
pub(super) struct Authorities {
    ca: PathBuf,
    verify: Box<Verify>,
    last: Mutex<Verifier>,
}

impl Authorities {
    /// Reads the file for the first time. `verify` makes a verifier with these authorities.
    pub(super) fn of(ca: PathBuf, verify: Box<Verify>) -> Result<Self, Error> {
        let last = Mutex::new(verify(Arc::new(pem::authorities(&ca)?))?);
        Ok(Self { ca, verify, last })
    }

    fn last(&self) -> Verifier {
        self.last.lock().clone()
    }
}

impl std::fmt::Debug for Authorities {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authorities").field("ca", &self.ca).finish_non_exhaustive()
    }
}

impl ServerCertVerifier for Authorities {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let read = pem::authorities(&self.ca).and_then(|roots| (self.verify)(Arc::new(roots)));
        let verifier = current(&self.last, read);
        verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.last().verify_tls12_signature(message, cert, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.last().verify_tls13_signature(message, cert, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.last().supported_verify_schemes()
    }
}

/// What was read now, or else what was read last.
fn current<T: Clone>(last: &Mutex<T>, read: Result<T, Error>) -> T {
    match read {
        Ok(now) => {
            *last.lock() = now.clone();
            now
        }
        Err(error) => {
            tracing::warn!(
                error.message = %error,
                "a file for TLS cannot be used any more: connections go on with what it had before"
            );
            last.lock().clone()
        }
    }
}
