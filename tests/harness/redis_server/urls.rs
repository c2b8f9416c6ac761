//! The server's addresses and URLs, which a test passes to the code under test.

use std::path::PathBuf;

use url::Url;

use super::{RedisServer, config};
use crate::{Proxy, patient, with_query};

impl RedisServer {
    /// Returns `127.0.0.1:PORT`, without TLS.
    pub fn addr(&self) -> String {
        format!("127.0.0.1:{}", self.config.port())
    }

    /// Returns `redis://…`, as the default user, with the password if there is one. It is
    /// [patient](crate::patient), as all URLs of the harness.
    pub fn url(&self) -> String {
        self.url_to("redis", &self.addr())
    }

    /// Returns [`url`](Self::url) with settings: `url_with("ttl=1s&prefix=test:")`.
    pub fn url_with(&self, query: &str) -> String {
        with_query(&self.url(), query)
    }

    /// Returns [`url`](Self::url) for one of the builder's users.
    pub fn url_as(&self, user: &str, password: &str) -> String {
        patient(&format!("redis://{}{}/", login(user, password), self.addr()))
    }

    /// Returns [`url`](Self::url) through a proxy in front of this server.
    pub fn url_through(&self, proxy: &Proxy) -> String {
        self.url_to("redis", &proxy.addr())
    }

    /// Returns `redis+unix://…`, without the default user's password. Every server has a socket.
    pub fn unix_url(&self) -> String {
        patient(&format!("redis+unix://{}", self.unix_path().display()))
    }

    /// Returns the socket's path.
    pub fn unix_path(&self) -> PathBuf {
        self.directory.path().join(config::SOCKET)
    }

    /// Returns `rediss://localhost:PORT/`, with the password if there is one.
    ///
    /// # Panics
    ///
    /// If the server was built without TLS.
    pub fn tls_url(&self) -> String {
        let port = self.config.tls_port().expect("a server built with .tls()");
        self.url_to("rediss", &format!("localhost:{port}"))
    }

    /// Returns `127.0.0.1:PORT` of the port with TLS.
    ///
    /// # Panics
    ///
    /// If the server was built without TLS.
    pub fn tls_addr(&self) -> String {
        let port = self.config.tls_port().expect("a server built with .tls()");
        format!("127.0.0.1:{port}")
    }

    /// Returns the port by which other servers reach this one.
    pub(crate) fn peer_port(&self) -> u16 {
        self.config.peer_port()
    }

    /// Returns the port of its cluster bus.
    pub(crate) fn bus_port(&self) -> u16 {
        self.config.bus_port().expect("a node of a cluster")
    }

    /// Returns the default user's password.
    pub(crate) fn password(&self) -> Option<&str> {
        self.config.password()
    }

    /// Returns the default user's login as a URL has it before its hosts: `:secret@`, or nothing.
    pub(crate) fn login(&self) -> String {
        self.config.password().map(|password| login("", password)).unwrap_or_default()
    }

    fn url_to(&self, scheme: &str, addr: &str) -> String {
        patient(&format!("{scheme}://{}{addr}/", self.login()))
    }
}

/// Returns a login as a URL has it before its hosts. The `url` crate escapes special characters
/// in passwords.
fn login(user: &str, password: &str) -> String {
    let mut url = Url::parse("redis://host").expect("our own URLs are well formed");
    let result = url.set_username(user).and_then(|()| url.set_password(Some(password)));
    result.expect("a URL with a host can have a login");
    format!("{}:{}@", url.username(), url.password().unwrap_or_default())
}
