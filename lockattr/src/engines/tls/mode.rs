//! Whether a connection uses TLS, and what it verifies: the modes of libpq.

#[cfg(feature = "tls")]
use super::Verification;
#[cfg(feature = "tls")]
use crate::Error;
use crate::lock::server_options::TlsFiles;

/// The modes of libpq's `sslmode`. MySQL has the same under other names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engines) enum TlsMode {
    /// Plaintext.
    Disable,
    /// TLS if the server offers it, otherwise plaintext.
    Prefer,
    /// TLS with any certificate. With a file of authorities, one of these must have signed it.
    Require,
    /// A trusted authority must have signed the server's certificate.
    VerifyCa,
    /// In addition, the certificate must name the host.
    VerifyFull,
}

impl TlsMode {
    /// Reads libpq's name of a mode. `allow`, which begins in plaintext, is not there.
    pub(in crate::engines) fn from_libpq(name: &str) -> Option<Self> {
        match name {
            "disable" => Some(Self::Disable),
            "prefer" => Some(Self::Prefer),
            "require" => Some(Self::Require),
            "verify-ca" => Some(Self::VerifyCa),
            "verify-full" => Some(Self::VerifyFull),
            _ => None,
        }
    }

    /// The mode of a store that names none. A program that names authorities wants the server
    /// verified, so `Prefer` would be a trap.
    pub(in crate::engines) fn default_with(files: &TlsFiles) -> Self {
        if files.ca.is_some() { Self::VerifyFull } else { Self::Prefer }
    }

    /// What is verified in this mode. As in libpq, a file of authorities is never ignored.
    #[cfg(feature = "tls")]
    pub(in crate::engines) fn verification(self, files: &TlsFiles) -> Result<Verification, Error> {
        if self == Self::VerifyCa && files.ca.is_none() {
            return Err(Error::InvalidOptions(
                "without `ca`, `verify-ca` accepts any certificate that any public authority signed, \
                 for any host: name the file of your authority with `ca`, or write `verify-full` \
                 (`verify_identity` for MySQL)"
                    .into(),
            ));
        }
        Ok(match self {
            Self::VerifyFull => Verification::Full,
            Self::VerifyCa => Verification::Chain,
            Self::Disable | Self::Prefer | Self::Require if files.ca.is_some() => {
                Verification::Chain
            }
            Self::Disable | Self::Prefer | Self::Require => Verification::None,
        })
    }
}
