//! What rustls' errors mean, in sentences that name the host and what to do.

use std::error::Error as StdError;

use rustls::{AlertDescription, CertificateError, Error};

/// Returns why TLS to `host` failed, if rustls is the cause of `error`.
pub(in crate::engines) fn explained(
    host: &str,
    error: &(dyn StdError + 'static),
) -> Option<String> {
    let cause = cause_in(error)?;
    Some(match cause {
        Error::InvalidCertificate(reason) => {
            format!("the certificate of {host} {}", invalid(reason))
        }
        Error::AlertReceived(alert) => format!("{host} {}", rejected(*alert)),
        Error::InvalidMessage(_) => format!(
            "{host} did not answer in TLS ({cause}): check the port, and that the server has TLS \
             there"
        ),
        Error::PeerIncompatible(_) => format!(
            "{host} and this program have no version or cipher of TLS in common ({cause}): the \
             server must offer TLS 1.2 or 1.3"
        ),
        _ => format!("TLS to {host} failed: {cause}"),
    })
}

/// Finds rustls' error. An `io::Error` is passed over in the chain of sources: it returns the
/// source of the error that it contains.
fn cause_in<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(cause) = error.downcast_ref() {
            return Some(cause);
        }
        let inner = error.downcast_ref::<std::io::Error>().and_then(|error| error.get_ref());
        next = match inner {
            Some(inner) => Some(inner as &(dyn StdError + 'static)),
            None => error.source(),
        };
    }
    None
}

fn invalid(reason: &CertificateError) -> String {
    match reason {
        CertificateError::NotValidForNameContext { presented, .. } if presented.is_empty() => {
            "names no host (it has no `subjectAltName`; its `CN` does not count): issue it with \
             the name that the URL has"
                .to_owned()
        }
        CertificateError::NotValidForNameContext { presented, .. } => format!(
            "is for another host ({}): connect by a name that it has, or issue it with this one",
            presented.join(", ")
        ),
        CertificateError::NotValidForName => {
            "is for another host: connect by a name that it has, or issue it with this one"
                .to_owned()
        }
        CertificateError::UnknownIssuer => {
            "is signed by an unknown authority: name the authority's file with `ca`".to_owned()
        }
        // As after an authority was made anew under its old name.
        CertificateError::BadSignature => {
            "is signed by an unknown authority, with the name of a trusted one and another key: name \
             the authority's file with `ca`"
                .to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("has expired ({reason}): renew it on the server")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("is not valid yet ({reason}): check the clocks of both machines")
        }
        CertificateError::Revoked => "has been revoked: replace it on the server".to_owned(),
        _ => format!("is not valid: {reason:?}"),
    }
}

fn rejected(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::CertificateRequired => {
            "requires a client certificate (alert: CertificateRequired): name one with \
             `client_cert` and `client_key`"
                .to_owned()
        }
        // Servers with Java or an older Go send it also to a client without any.
        AlertDescription::BadCertificate => {
            "requires a client certificate, or does not accept the client's (alert: \
             BadCertificate): name one that it accepts with `client_cert` and `client_key`"
                .to_owned()
        }
        AlertDescription::UnknownCA
        | AlertDescription::CertificateUnknown
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateRevoked
        | AlertDescription::UnsupportedCertificate => {
            format!("does not accept the client's certificate (alert: {alert:?})")
        }
        _ => format!("ended the handshake (alert: {alert:?})"),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use rustls::pki_types::ServerName;
    use rustls::{InvalidMessage, PeerIncompatible};

    use super::*;

    #[test]
    fn each_failure_names_the_host_and_what_to_do() {
        let expected = || ServerName::try_from("db.example").unwrap();
        let no_name = CertificateError::NotValidForNameContext {
            expected: expected(),
            presented: Vec::new(),
        };
        for (error, says) in [
            (Error::InvalidCertificate(no_name), "has no `subjectAltName`"),
            (CertificateError::NotValidForName.into(), "connect by a name that it has"),
            (CertificateError::NotValidYet.into(), "check the clocks of both machines"),
            (CertificateError::Revoked.into(), "replace it on the server"),
            (CertificateError::UnhandledCriticalExtension.into(), "UnhandledCriticalExtension"),
            (
                Error::AlertReceived(AlertDescription::CertificateRequired),
                "name one with `client_cert` and `client_key`",
            ),
            (
                Error::AlertReceived(AlertDescription::UnknownCA),
                "does not accept the client's certificate (alert: UnknownCA)",
            ),
            (
                Error::AlertReceived(AlertDescription::HandshakeFailure),
                "ended the handshake (alert: HandshakeFailure)",
            ),
            (
                Error::InvalidMessage(InvalidMessage::InvalidContentType),
                "check the port, and that the server has TLS there",
            ),
            (
                Error::PeerIncompatible(PeerIncompatible::NoCipherSuitesInCommon),
                "the server must offer TLS 1.2 or 1.3",
            ),
            (Error::HandshakeNotComplete, "TLS to db.example failed: "),
        ] {
            // As clients report it.
            let error = io::Error::new(io::ErrorKind::InvalidData, error);
            let sentence = explained("db.example", &error).unwrap();
            assert!(sentence.contains(says) && sentence.contains("db.example"), "{sentence}");
        }
    }

    #[test]
    fn an_error_of_another_layer_is_not_explained() {
        let error = io::Error::new(io::ErrorKind::ConnectionReset, "it ended");
        assert_eq!(explained("db.example", &error), None);
    }
}
