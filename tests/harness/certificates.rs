//! The files with the certificates of a server and its clients.

use std::fs::{read_to_string, write};
use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;

use crate::authority::{Authority, CA, CLIENT, CLIENT_KEY, LEAF, LEAF_KEY};

/// An authority of its own, a server's certificate, and a client's. The files are removed when this
/// value is dropped.
#[derive(Debug)]
pub struct Certificates {
    directory: TempDir,
    demands_client: bool,
}

impl Certificates {
    /// Returns a server's certificate for `localhost` and `127.0.0.1`.
    pub fn new() -> Self {
        Self::of(&Authority::generate())
    }

    /// Returns one for another host.
    pub fn of_another_name() -> Self {
        Self::of(&Authority::of_another_name())
    }

    /// Returns one that has expired.
    pub fn expired() -> Self {
        Self::of(&Authority::expired())
    }

    /// The server demands a certificate of its clients.
    #[must_use]
    pub fn demanding_clients(self) -> Self {
        Self { demands_client: true, ..self }
    }

    fn of(authority: &Arc<Authority>) -> Self {
        let directory = TempDir::with_prefix("lockattr-").expect("a temporary directory");
        authority.write_into(directory.path());
        let certificates = Self { directory, demands_client: false };
        let text = |path| read_to_string(path).expect("the file was just written");
        let both = [text(certificates.server_key()), text(certificates.server())].concat();
        write(certificates.server_with_key(), both).expect("our own directory");
        certificates
    }

    /// Returns the authority's file.
    pub fn ca(&self) -> PathBuf {
        self.directory.path().join(CA)
    }

    /// Returns the settings of a URL that trusts the authority.
    pub fn trusted(&self) -> String {
        format!("tls=true&ca={}", self.ca().display())
    }

    /// Returns the settings of a URL that also presents the client's certificate.
    pub fn presented(&self) -> String {
        let path = |name| self.directory.path().join(name).display().to_string();
        let (cert, key) = (path(CLIENT), path(CLIENT_KEY));
        format!("{}&client_cert={cert}&client_key={key}", self.trusted())
    }

    /// Returns the files of a client: the authority's, its certificate and its key.
    pub fn client_files(&self) -> [PathBuf; 3] {
        [CA, CLIENT, CLIENT_KEY].map(|name| self.directory.path().join(name))
    }

    pub(crate) fn server(&self) -> PathBuf {
        self.directory.path().join(LEAF)
    }

    pub(crate) fn server_key(&self) -> PathBuf {
        self.directory.path().join(LEAF_KEY)
    }

    /// Returns the file with both, as Java reads them.
    pub(crate) fn server_with_key(&self) -> PathBuf {
        self.directory.path().join("both.pem")
    }

    pub(crate) fn demands_client(&self) -> bool {
        self.demands_client
    }
}

impl Default for Certificates {
    fn default() -> Self {
        Self::new()
    }
}
