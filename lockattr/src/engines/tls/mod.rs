//! TLS as the engines share it: whom a client trusts, what it presents, and why a handshake failed.
//!
//! Nothing here installs a provider of cryptography for the whole process: that choice is the
//! program's.

#[cfg(feature = "tls")]
mod authorities;
#[cfg(feature = "tls")]
mod config;
#[cfg(feature = "tls")]
mod failure;
mod mode;
#[cfg(all(feature = "tls", any(feature = "postgres", all(feature = "mysql", unix))))]
mod name;
#[cfg(feature = "tls")]
mod pem;
#[cfg(feature = "tls")]
mod verification;

#[cfg(feature = "tls")]
pub(in crate::engines) use config::client_config;
#[cfg(feature = "tls")]
pub(in crate::engines) use failure::explained;
pub(in crate::engines) use mode::TlsMode;
#[cfg(all(feature = "tls", any(feature = "postgres", all(feature = "mysql", unix))))]
pub(in crate::engines) use name::server_name;
#[cfg(feature = "tls")]
pub(in crate::engines) use verification::Verification;
