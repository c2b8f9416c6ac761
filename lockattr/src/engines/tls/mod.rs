//! TLS as the engines share it: whom a client trusts, what it presents, and why a handshake failed.
//!
//! Nothing here installs a provider of cryptography for the whole process: that choice is the
//! program's.

#[cfg(feature = "tls")]
mod authorities;
#[cfg(feature = "tls")]
mod config;
#[cfg(feature = "tls")]
mod current;
mod enabled;
#[cfg(feature = "tls")]
mod failure;
mod mode;
#[cfg(feature = "tls")]
mod name;
#[cfg(feature = "tls")]
mod pem;
#[cfg(feature = "tls")]
mod relay;
#[cfg(feature = "tls")]
mod verification;

#[cfg(feature = "tls")]
pub(in crate::engines) use config::client_config;
pub(in crate::engines) use enabled::{check_enabled, yes_or_no};
#[cfg(feature = "tls")]
pub(in crate::engines) use failure::explained;
pub(in crate::engines) use mode::TlsMode;
#[cfg(feature = "tls")]
pub(in crate::engines) use name::server_name;
#[cfg(feature = "tls")]
pub(in crate::engines) use pem::PemFiles;
#[cfg(feature = "tls")]
pub(in crate::engines) use relay::{refusal, secure};
#[cfg(feature = "tls")]
pub(in crate::engines) use verification::Verification;
