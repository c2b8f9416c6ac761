//! A certificate authority for one server, or for several that trust one another, and the
//! certificates it signs.

use std::fs::write;
use std::path::Path;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};

pub(crate) const CA: &str = "ca.pem";
pub(crate) const LEAF: &str = "server.pem";
pub(crate) const LEAF_KEY: &str = "server.key";
pub(crate) const CLIENT: &str = "client.pem";
pub(crate) const CLIENT_KEY: &str = "client.key";

/// The year in which certificates expire.
const NOT_AFTER: i32 = 4096;

/// The certificate and key files of a server and its clients, by name.
pub(crate) struct Authority([(&'static str, String); 5]);

impl Authority {
    pub(crate) fn generate() -> Arc<Self> {
        Self::of(&["localhost", "127.0.0.1"], NOT_AFTER)
    }

    /// The server's certificate is for another name.
    pub(crate) fn of_another_name() -> Arc<Self> {
        Self::of(&["db.example"], NOT_AFTER)
    }

    /// The server's certificate has expired.
    pub(crate) fn expired() -> Arc<Self> {
        Self::of(&["localhost", "127.0.0.1"], 2020)
    }

    fn of(names: &[&str], not_after: i32) -> Arc<Self> {
        Arc::new(Self(certificates(names, not_after).expect("certificates from constant names")))
    }

    pub(crate) fn write_into(&self, directory: &Path) {
        for (name, pem) in &self.0 {
            write(directory.join(name), pem).expect("the server's directory is writable");
        }
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Five keys and certificates would only clutter a failed assertion.
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

/// Generates the authority and the certificates it signs, the server's for these names. Authority and server have separate
/// certificates, because rustls refuses an authority's certificate from a server.
fn certificates(
    names: &[&str],
    not_after: i32,
) -> Result<[(&'static str, String); 5], rcgen::Error> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    authority.distinguished_name.push(DnType::CommonName, "lockattr tests");
    let authority_key = KeyPair::generate()?;
    let authority_pem = authority.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(authority, authority_key);

    let (leaf, leaf_key) = signed(names, not_after, &issuer)?;
    let (client, client_key) = signed(&["client"], NOT_AFTER, &issuer)?;
    Ok([
        (CA, authority_pem),
        (LEAF, leaf),
        (LEAF_KEY, leaf_key),
        (CLIENT, client),
        (CLIENT_KEY, client_key),
    ])
}

fn signed(
    names: &[&str],
    not_after: i32,
    issuer: &Issuer<'_, KeyPair>,
) -> Result<(String, String), rcgen::Error> {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let key = KeyPair::generate()?;
    let mut certificate = CertificateParams::new(names)?;
    certificate.not_after = date_time_ymd(not_after, 1, 1);
    let certificate = certificate.signed_by(&key, issuer)?;
    Ok((certificate.pem(), key.serialize_pem()))
}
