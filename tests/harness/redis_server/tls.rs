//! A certificate authority for one server, and the certificate that it signs.

use std::fs::write;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

pub(super) const CA: &str = "ca.pem";
pub(super) const LEAF: &str = "server.pem";
pub(super) const LEAF_KEY: &str = "server.key";

/// Authority and leaf are two certificates, because rustls refuses an authority that poses as a
/// server.
pub(super) fn write_certificates(directory: &Path) {
    let pems = certificates().expect("certificates from constant names");
    for (name, pem) in [CA, LEAF, LEAF_KEY].into_iter().zip(pems) {
        write(directory.join(name), pem).expect("the server's directory takes files");
    }
}

fn certificates() -> Result<[String; 3], rcgen::Error> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    authority.distinguished_name.push(DnType::CommonName, "lockattr tests");
    let authority_key = KeyPair::generate()?;
    let authority_pem = authority.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(authority, authority_key);

    let leaf = CertificateParams::new(["localhost".to_owned(), "127.0.0.1".to_owned()])?;
    let leaf_key = KeyPair::generate()?;
    let leaf_pem = leaf.signed_by(&leaf_key, &issuer)?.pem();
    Ok([authority_pem, leaf_pem, leaf_key.serialize_pem()])
}
