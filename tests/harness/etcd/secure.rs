//! An etcd of one member that serves its clients over TLS only.

use tempfile::TempDir;

use super::ctl;
use super::member::Member;
use crate::eventually::Backoff;
use crate::{Certificates, patient, with_query};

/// One member, which is killed when this value is dropped.
#[derive(Debug)]
pub struct SecureEtcd {
    // Declared first, so that it is dropped before its directory.
    member: Member,
    _directory: TempDir,
}

impl SecureEtcd {
    /// Starts a member that presents this certificate.
    ///
    /// # Panics
    ///
    /// If it does not serve within [`HUNG`](crate::HUNG).
    pub async fn start(certificates: &Certificates) -> Self {
        let directory = TempDir::with_prefix("lockattr-").expect("a temporary directory");
        let mut member = Member::all(1).remove(0).with_tls(certificates);
        member.start(directory.path());
        let mut backoff = Backoff::new();
        while !ctl::is_healthy(&member.status_addr()).await {
            let running = member.check_running(directory.path());
            let goes_on = running.is_ok() && backoff.pause().await;
            assert!(goes_on, "etcd did not start: {}", member.log_tail(directory.path()));
        }
        Self { member, _directory: directory }
    }

    /// Returns `etcd://localhost:port/` with these settings.
    pub fn url(&self, settings: &str) -> String {
        let addr = self.member.addr().replace("127.0.0.1", "localhost");
        with_query(&patient(&format!("etcd://{addr}/")), settings)
    }
}
