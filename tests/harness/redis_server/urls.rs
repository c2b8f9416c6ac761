//! The addresses and URLs under which a test hands its server to the code under test.

use std::path::PathBuf;

use url::Url;

use super::{RedisServer, config};
use crate::Proxy;

impl RedisServer {
    /// `127.0.0.1:PORT`, without TLS.
    pub fn addr(&self) -> String {
        format!("127.0.0.1:{}", self.config.port())
    }

    /// `redis://…`, as the default user and with the password, if there is one.
    pub fn url(&self) -> String {
        self.url_to("redis", &self.addr())
    }

    /// [`url`](Self::url) with settings: `url_with("ttl=1s&prefix=test:")`.
    pub fn url_with(&self, query: &str) -> String {
        format!("{}?{query}", self.url())
    }

    /// [`url`](Self::url) as one of the users given to the builder.
    pub fn url_as(&self, user: &str, password: &str) -> String {
        format!("redis://{}{}/", login(user, password), self.addr())
    }

    /// [`url`](Self::url) through a proxy that was started for this server.
    pub fn url_through(&self, proxy: &Proxy) -> String {
        self.url_to("redis", &proxy.addr())
    }

    /// `redis+unix://…`. Every server has its socket; the default user's password is not in this
    /// URL.
    pub fn unix_url(&self) -> String {
        format!("redis+unix://{}", self.unix_path().display())
    }

    /// The socket's path.
    pub fn unix_path(&self) -> PathBuf {
        self.directory.path().join(config::SOCKET)
    }

    /// `rediss://localhost:PORT/`, with the password if there is one.
    ///
    /// # Panics
    ///
    /// When the server was built without TLS.
    pub fn tls_url(&self) -> String {
        let port = self.config.tls_port().expect("a server built with .tls()");
        self.url_to("rediss", &format!("localhost:{port}"))
    }

    /// `127.0.0.1:PORT` of the port that speaks TLS.
    ///
    /// # Panics
    ///
    /// When the server was built without TLS.
    pub fn tls_addr(&self) -> String {
        let port = self.config.tls_port().expect("a server built with .tls()");
        format!("127.0.0.1:{port}")
    }

    /// Where other servers reach this one.
    pub(crate) fn peer_port(&self) -> u16 {
        self.config.peer_port()
    }

    /// Where the other nodes of its cluster talk to it.
    pub(crate) fn bus_port(&self) -> u16 {
        self.config.bus_port().expect("a node of a cluster")
    }

    /// The default user's.
    pub(crate) fn password(&self) -> Option<&str> {
        self.config.password()
    }

    /// The default user's login as it stands in front of a URL's hosts: `:secret@`, or nothing.
    pub(crate) fn login(&self) -> String {
        self.config.password().map(|password| login("", password)).unwrap_or_default()
    }

    fn url_to(&self, scheme: &str, addr: &str) -> String {
        format!("{scheme}://{}{addr}/", self.login())
    }
}

/// A login as it stands in front of a URL's hosts. The `url` crate does the escaping: passwords in
/// tests are as nasty as passwords elsewhere.
fn login(user: &str, password: &str) -> String {
    let mut url = Url::parse("redis://host").expect("our own URLs are well formed");
    let done = url.set_username(user).and_then(|()| url.set_password(Some(password)));
    done.expect("a URL with a host takes a login");
    format!("{}:{}@", url.username(), url.password().unwrap_or_default())
}
