//! TLS connections: which authorities are trusted, and which certificate is presented.

#[cfg(feature = "tls")]
mod pem;

use redis::{Client, ConnectionInfo, RedisResult};
#[cfg(feature = "tls")]
use redis::{ConnectionAddr, TlsCertificates};

use crate::Error;
use crate::lock::server_options::TlsFiles;

/// How the connections of one store are secured. The files were read when it was created.
#[derive(Clone)]
pub(super) struct Tls {
    /// `None` without TLS. Without files in it: the system's authorities, and no certificate.
    #[cfg(feature = "tls")]
    certificates: Option<TlsCertificates>,
}

/// Returns whether a URL asks for TLS: by its scheme, or by `tls=true` if it names several hosts.
pub(in crate::engines) fn uses_tls(scheme: &str, setting: Option<&str>) -> Result<bool, Error> {
    match setting {
        None => Ok(scheme == "rediss"),
        Some("false") => Ok(false),
        Some("true") if cfg!(feature = "tls") => Ok(true),
        Some("true") => Err(Error::InvalidOptions(
            "`tls=true` needs lockattr's feature `tls`: add it in Cargo.toml".into(),
        )),
        Some(_) => {
            Err(Error::InvalidOptions("`tls` in the URL is neither `true` nor `false`".into()))
        }
    }
}

impl Tls {
    /// Reads the files. `encrypted` says whether the URL asks for TLS, which needs the feature
    /// `tls`.
    pub(super) fn read(files: &TlsFiles, encrypted: bool) -> Result<Self, Error> {
        if let Some((name, _)) = files.named().next().filter(|_| !encrypted) {
            return Err(Error::InvalidOptions(format!(
                "`{name}` is for a store whose URL asks for TLS, such as `rediss://`"
            )));
        }
        Ok(Self {
            #[cfg(feature = "tls")]
            certificates: encrypted.then(|| pem::certificates(files)).transpose()?,
        })
    }

    /// Returns a client for `info`: with TLS if it was requested, whatever `info` says.
    pub(super) fn client(&self, info: ConnectionInfo) -> RedisResult<Client> {
        #[cfg(feature = "tls")]
        if let Some(certificates) = &self.certificates {
            let info = match info.addr().clone() {
                ConnectionAddr::Tcp(host, port) => info.set_addr(ConnectionAddr::TcpTls {
                    host,
                    port,
                    insecure: false,
                    tls_params: None,
                }),
                _ => info,
            };
            return Client::build_with_tls(info, certificates.clone());
        }
        Client::open(info)
    }
}

#[cfg(all(test, feature = "tls"))]
mod tests {
    use redis::IntoConnectionInfo;

    use super::*;

    /// As hosts come from a sentinel or a cluster: without a scheme.
    #[test]
    fn a_host_without_a_scheme_is_asked_with_tls_too() {
        let info = || ("db.example", 6379).into_connection_info().unwrap();
        let address = |encrypted| {
            let tls = Tls::read(&TlsFiles::default(), encrypted).unwrap();
            tls.client(info()).unwrap().get_connection_info().addr().clone()
        };
        assert!(matches!(
            address(true),
            ConnectionAddr::TcpTls { port: 6379, insecure: false, .. }
        ));
        assert!(matches!(address(false), ConnectionAddr::Tcp(_, 6379)));
    }
}
