//! TLS for a PostgreSQL server: its authority, its certificates, and those of its clients.

use std::fs::{Permissions, set_permissions, write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SignatureAlgorithm, date_time_ymd,
};

use super::{PostgresServer, launch, other_user};
use crate::Engine;

/// The certificate that a server presents. Its authority has signed each of them.
#[derive(Clone, Copy, Debug)]
pub enum ServerCertificate {
    /// For `localhost` and `127.0.0.1`.
    Localhost,
    /// The same, signed with SHA-384.
    LocalhostSha384,
    /// For `db.example`.
    OtherHost,
    /// For `localhost`, until the year 2001.
    Expired,
}

const CA: &str = "ca.pem";

impl PostgresServer {
    /// Starts a server with TLS, an authority of its own, and a certificate for `localhost`.
    pub async fn with_tls() -> Self {
        Self::presenting(ServerCertificate::Localhost).await
    }

    /// Starts a server with TLS, an authority of its own, and this certificate.
    pub async fn presenting(certificate: ServerCertificate) -> Self {
        let server = launch::create().await;
        server.write_certificates(certificate).expect("certificates from constant names");
        server.set(&["ssl = on", "ssl_ca_file = '../ca.pem'"]);
        server.set(&["ssl_cert_file = '../server.pem'", "ssl_key_file = '../server.key'"]);
        server.revive().await;
        server
    }

    /// Makes a server with TLS present this certificate, from a new authority, by a restart.
    pub async fn present(&self, certificate: ServerCertificate) {
        self.write_certificates(certificate).expect("certificates from constant names");
        self.restart().await;
    }

    /// Replaces the rules by which clients log in (`pg_hba.conf`), by a restart. The harness' own
    /// user keeps its access from this machine.
    pub async fn admit(&self, rules: &str) {
        let harness = "host all lockattr 127.0.0.1/32 trust\n";
        let file = self.directory.path().join("data/pg_hba.conf");
        write(file, [harness, rules, "\n"].concat()).expect("the server's directory is writable");
        self.restart().await;
    }

    /// Returns the path of the authority's certificate.
    pub fn ca_path(&self) -> PathBuf {
        self.directory.path().join(CA)
    }

    /// Returns the paths of a certificate for the user `certified`, and of its key.
    pub fn client_paths(&self) -> (PathBuf, PathBuf) {
        let path = |name| self.directory.path().join(name);
        (path("client.pem"), path("client.key"))
    }

    fn write_certificates(&self, certificate: ServerCertificate) -> Result<(), rcgen::Error> {
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        authority.distinguished_name.push(DnType::CommonName, "lockattr tests");
        let algorithm: &SignatureAlgorithm = match certificate {
            ServerCertificate::LocalhostSha384 => &rcgen::PKCS_ECDSA_P384_SHA384,
            _ => &rcgen::PKCS_ECDSA_P256_SHA256,
        };
        let authority_key = KeyPair::generate_for(algorithm)?;
        let authority_pem = authority.self_signed(&authority_key)?.pem();
        let issuer = Issuer::new(authority, authority_key);

        let name = match certificate {
            ServerCertificate::OtherHost => vec!["db.example".to_owned()],
            _ => vec!["localhost".to_owned(), "127.0.0.1".to_owned()],
        };
        let mut server = CertificateParams::new(name)?;
        if matches!(certificate, ServerCertificate::Expired) {
            server.not_before = date_time_ymd(2000, 1, 1);
            server.not_after = date_time_ymd(2001, 1, 1);
        }
        let mut client = CertificateParams::new(Vec::new())?;
        // The server's method `cert` takes the user's name from here.
        client.distinguished_name.push(DnType::CommonName, "certified");

        self.write_file(CA, &authority_pem);
        for (name, params) in [("server", server), ("client", client)] {
            let key = KeyPair::generate()?;
            let signed = params.signed_by(&key, &issuer)?;
            self.write_file(&format!("{name}.pem"), &signed.pem());
            self.write_file(&format!("{name}.key"), &key.serialize_pem());
        }
        Ok(())
    }

    /// Writes a file that the server agrees to read: a key must belong to it alone.
    fn write_file(&self, name: &str, text: &str) {
        let path = self.directory.path().join(name);
        write(&path, text).expect("the server's directory is writable");
        set_permissions(&path, Permissions::from_mode(0o600)).expect("its own file");
        if let Some((user, group)) = other_user() {
            chown(&path, Some(user), Some(group)).expect("root may change the owner of a file");
        }
    }
}
