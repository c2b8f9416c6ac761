//! TLS as the engines share it: whom a client trusts, what it presents, and why a handshake failed.
//!
//! Nothing here installs a provider of cryptography for the whole process: that choice is the
//! program's.

mod authorities;
mod config;
mod failure;
mod mode;
mod pem;
mod verification;

pub(in crate::engines) use config::client_config;
pub(in crate::engines) use failure::explained;
pub(in crate::engines) use mode::TlsMode;
#[cfg(feature = "redis")]
pub(in crate::engines) use pem::{authorities, identity, read};
pub(in crate::engines) use verification::Verification;
