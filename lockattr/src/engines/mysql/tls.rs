//! Whether a store's connections are encrypted, by the modes of MySQL's own clients.

#[cfg(feature = "tls")]
use std::sync::Arc;

#[cfg(feature = "tls")]
use rustls::ClientConfig;

use crate::Error;
use crate::engines::plaintext;
#[cfg(feature = "tls")]
use crate::engines::tls::{TlsMode, Verification, client_config};
use crate::lock::server_options::TlsFiles;

/// The names of the modes, as MySQL's clients have them.
const MODES: [&str; 5] = ["disabled", "preferred", "required", "verify_ca", "verify_identity"];

/// The TLS settings of one store. The files are read for each connection.
#[derive(Clone, Default)]
pub(super) struct Tls {
    /// Whether the URL leaves open how a server on another machine is reached that offers no TLS, so
    /// that no password may follow.
    pub(super) is_preferred: bool,
    /// With what it verifies. `None` for plaintext.
    #[cfg(feature = "tls")]
    pub(super) config: Option<(Arc<ClientConfig>, Verification)>,
    /// Whether a server that offers no TLS is refused.
    #[cfg(feature = "tls")]
    pub(super) is_required: bool,
}

impl Tls {
    /// Reads the setting `ssl-mode`, and the files. Without either, a server on this machine is
    /// reached in plaintext: nothing crosses a network.
    pub(super) fn read(host: &str, mode: Option<&str>, files: &TlsFiles) -> Result<Self, Error> {
        let has_files = files.ca.is_some() || files.cert.is_some();
        let mode = match mode.map(named).transpose()? {
            None if !has_files && !plaintext::is_remote(host) => Some(0),
            mode => mode,
        };
        if mode == Some(0) && has_files {
            return Err(Error::InvalidOptions(
                "`ca`, `client_cert` and `client_key` are for a store with TLS: leave \
                 `ssl-mode=disabled` out"
                    .into(),
            ));
        }
        Self::with(mode, files, has_files)
    }

    #[cfg(not(feature = "tls"))]
    fn with(mode: Option<usize>, _files: &TlsFiles, has_files: bool) -> Result<Self, Error> {
        if has_files || mode.is_some_and(|mode| mode > 1) {
            return Err(Error::InvalidOptions(
                "TLS needs lockattr's feature `tls`: add it in Cargo.toml".into(),
            ));
        }
        Ok(Self { is_preferred: mode != Some(0) })
    }

    #[cfg(feature = "tls")]
    fn with(mode: Option<usize>, files: &TlsFiles, _has_files: bool) -> Result<Self, Error> {
        let mode = match mode {
            None => TlsMode::default_with(files),
            Some(0) => TlsMode::Disable,
            Some(1) => TlsMode::Prefer,
            Some(2) => TlsMode::Require,
            Some(3) => TlsMode::VerifyCa,
            Some(_) => TlsMode::VerifyFull,
        };
        let is_required = !matches!(mode, TlsMode::Disable | TlsMode::Prefer);
        if !CAN_RELAY && is_required {
            return Err(Error::InvalidOptions(
                "`mysql://` has TLS on Linux, Android and macOS only: connect through a tunnel here"
                    .into(),
            ));
        }
        let verification = mode.verification(files)?;
        let config = (CAN_RELAY && mode != TlsMode::Disable)
            .then(|| Ok((Arc::new(client_config(files, verification)?), verification)));
        let is_preferred = mode == TlsMode::Prefer;
        Ok(Self { config: config.transpose()?, is_required, is_preferred })
    }
}

/// Whether this system says which process connects to a Unix socket.
pub(super) const CAN_RELAY: bool =
    cfg!(any(target_os = "linux", target_os = "android", target_os = "macos"));

/// The position of a mode among [`MODES`].
fn named(value: &str) -> Result<usize, Error> {
    let plain = value.to_ascii_lowercase().replace('-', "_");
    MODES.iter().position(|mode| *mode == plain).ok_or_else(|| {
        Error::InvalidOptions(
            "`ssl-mode` in a `mysql://` URL is `disabled`, `preferred`, `required`, `verify_ca` or \
             `verify_identity`"
                .into(),
        )
    })
}

/// The error for a name of this setting in other clients.
pub(super) fn other_name(name: &str) -> Error {
    Error::InvalidOptions(format!(
        "`{name}` is another client's name: for `mysql://`, write `ssl-mode` with `disabled`, \
         `preferred`, `required`, `verify_ca` or `verify_identity`"
    ))
}

#[cfg(all(test, feature = "tls"))]
mod tests {
    use super::*;

    /// Red without: `is_remote` in `Tls::read`.
    #[test]
    fn the_default_is_plaintext_on_one_machine_and_tls_to_another() {
        let files = TlsFiles::default();
        let is_encrypted = |host, mode| Tls::read(host, mode, &files).unwrap().config.is_some();
        assert!(!is_encrypted("localhost", None) && !is_encrypted("127.0.0.1", None));
        assert!(is_encrypted("db.example", None) && is_encrypted("localhost", Some("preferred")));
        assert!(!is_encrypted("db.example", Some("disabled")));
    }
}
