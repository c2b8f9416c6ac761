//! What a server must be called in its certificate.

use std::net::{IpAddr, Ipv4Addr};

use rustls::pki_types::{InvalidDnsNameError, ServerName};

use super::Verification;

/// Returns the name of a host for a handshake.
///
/// A system may resolve hosts that no certificate can name, as `127.1`. Where the name is not
/// verified, the handshake has an address in its place, which is not sent to the server.
///
/// # Errors
///
/// [`Unnameable`] if the name must be verified, and no certificate can have it.
pub(in crate::engines) fn server_name(
    host: &str,
    verification: Verification,
) -> Result<ServerName<'static>, Unnameable> {
    match ServerName::try_from(host.to_owned()) {
        Err(source) if verification == Verification::Full => {
            Err(Unnameable { host: host.to_owned(), source })
        }
        name => Ok(name.unwrap_or(IpAddr::from(Ipv4Addr::UNSPECIFIED).into())),
    }
}

/// The error about a host that no certificate can name.
#[derive(Debug, thiserror::Error)]
#[error("no certificate can name the host {host}: write it differently")]
pub(in crate::engines) struct Unnameable {
    host: String,
    source: InvalidDnsNameError,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_that_is_verified_must_be_one() {
        let partly = [Verification::None, Verification::Chain];
        for verification in [Verification::Full].into_iter().chain(partly) {
            for host in ["db.example", "localhost", "10.0.0.1", "::1"] {
                let name = server_name(host, verification).unwrap();
                assert_eq!(name.to_str(), host);
            }
        }
        for verification in partly {
            let name = server_name("127.1", verification).unwrap();
            assert!(matches!(name, ServerName::IpAddress(_)), "{name:?} is sent to the server");
        }
        let refused = server_name("127.1", Verification::Full).unwrap_err();
        assert!(refused.to_string().contains("the host 127.1: write it"), "{refused}");
    }
}
