//! The settings of a URL that turns TLS on by `tls=true`.

use crate::Error;
use crate::lock::server_options::TlsFiles;

/// Reads the value of `tls` in a URL.
pub(in crate::engines) fn yes_or_no(value: &str) -> Result<bool, Error> {
    value.parse().map_err(|_| Error::InvalidOptions("`tls` in the URL is `true` or `false`".into()))
}

/// Refuses TLS in a program without it, and files of a store without TLS.
pub(in crate::engines) fn check_enabled(files: &TlsFiles, enabled: bool) -> Result<(), Error> {
    if enabled && cfg!(not(feature = "tls")) {
        return Err(Error::InvalidOptions(
            "`tls=true` needs lockattr's feature `tls`: add it in Cargo.toml".into(),
        ));
    }
    if !enabled && (files.ca.is_some() || files.cert.is_some() || files.key.is_some()) {
        return Err(Error::InvalidOptions(
            "`ca`, `client_cert` and `client_key` are for a store whose URL asks for TLS: add `tls=true`"
                .into(),
        ));
    }
    Ok(())
}
