//! The authorities that the system trusts.

use std::sync::Arc;

use once_cell::sync::OnceCell;
use rustls::RootCertStore;

use crate::Error;

/// Returns the system's authorities, which are read and parsed once: there are some hundred.
pub(super) fn of_the_system() -> Result<Arc<RootCertStore>, Error> {
    static SYSTEM: OnceCell<Arc<RootCertStore>> = OnceCell::new();
    SYSTEM.get_or_try_init(load).cloned()
}

fn load() -> Result<Arc<RootCertStore>, Error> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // A system may contain certificates that rustls cannot read. The others count all the same.
    let (added, _ignored) = roots.add_parsable_certificates(found.certs);
    if added > 0 {
        return Ok(Arc::new(roots));
    }
    let reason = found.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
    Err(Error::InvalidOptions(format!(
        "this system has no certificate authorities{reason}: install them (`ca-certificates`), or \
         name a file with `ca`"
    )))
}
