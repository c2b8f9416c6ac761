//! TLS to the server, by libpq's `sslmode`.

#[cfg(feature = "tls")]
mod channel_binding;
#[cfg(feature = "tls")]
mod handshake;

use std::sync::Arc;

use tokio_postgres::NoTls;
use tokio_postgres::config::{Host, SslMode, SslNegotiation};

use super::connect::{By, Connector};
use crate::Error;
use crate::engines::tls::TlsMode;
#[cfg(feature = "tls")]
use crate::engines::tls::client_config;
use crate::lock::server_options::TlsFiles;
#[cfg(feature = "tls")]
use handshake::Handshakes;

/// Applies `sslmode`, if there is one, and reads the files. Returns what opens the connections.
pub(super) fn connector(
    server: &mut tokio_postgres::Config,
    sslmode: Option<&str>,
    files: &TlsFiles,
) -> Result<Connector, Error> {
    let mode = mode(server, sslmode, files)?;
    if mode == TlsMode::Disable {
        if let Some((name, _)) = files.named().next().filter(|_| sslmode.is_some()) {
            return Err(Error::InvalidOptions(format!(
                "`{name}` is for TLS, and `sslmode=disable` excludes it: leave one of them out"
            )));
        }
        server.ssl_mode(SslMode::Disable);
        return Ok(Arc::new(By(NoTls)));
    }
    // What a verifier demands is not the client's concern.
    let is_preferred = mode == TlsMode::Prefer;
    server.ssl_mode(if is_preferred { SslMode::Prefer } else { SslMode::Require });
    if is_preferred && server.get_ssl_negotiation() == SslNegotiation::Direct {
        return Err(Error::InvalidOptions(
            "`sslnegotiation=direct` leaves the server no choice: add `sslmode=verify-full`, \
             `verify-ca` or `require`"
                .into(),
        ));
    }
    #[cfg(feature = "tls")]
    {
        let verification = mode.verification(files)?;
        let mut tls = client_config(files, verification)?;
        // Without it, a server refuses a direct negotiation.
        tls.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Arc::new(By(Handshakes::new(tls, verification))))
    }
    #[cfg(not(feature = "tls"))]
    {
        if !is_preferred {
            return Err(Error::InvalidOptions(
                "TLS needs lockattr's feature `tls`: add it in Cargo.toml, or leave out `sslmode` \
                 and the files for TLS"
                    .into(),
            ));
        }
        Ok(Arc::new(By(NoTls)))
    }
}

fn mode(
    server: &tokio_postgres::Config,
    sslmode: Option<&str>,
    files: &TlsFiles,
) -> Result<TlsMode, Error> {
    let chosen = match sslmode {
        None => TlsMode::default_with(files),
        Some(name) => TlsMode::from_libpq(name).ok_or_else(|| {
            Error::InvalidOptions(
                "`sslmode` must be `disable`, `prefer` (the default), `require`, `verify-ca` or \
                 `verify-full`; `allow`, which begins in plaintext, is not supported"
                    .into(),
            )
        })?,
    };
    // As in libpq, `sslmode` does not concern Unix sockets: the server has no TLS there.
    let hosts = server.get_hosts();
    let is_socket = |host: &Host| !matches!(host, Host::Tcp(_));
    // The client connects to an address by TCP, whatever the host is.
    if !server.get_hostaddrs().is_empty() && hosts.iter().any(is_socket) {
        return Err(Error::InvalidOptions(
            "`hostaddr` is an address in the network, and `host` a socket on this machine: leave one \
             of them out"
                .into(),
        ));
    }
    let only_sockets = !hosts.is_empty() && hosts.iter().all(is_socket);
    Ok(if only_sockets { TlsMode::Disable } else { chosen })
}
