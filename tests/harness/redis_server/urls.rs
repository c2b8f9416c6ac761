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
        with_login(&self.url(), user, password)
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

    fn url_to(&self, scheme: &str, addr: &str) -> String {
        let bare = format!("{scheme}://{addr}/");
        match self.config.password() {
            Some(password) => with_login(&bare, "", password),
            None => bare,
        }
    }
}

/// The `url` crate does the escaping: passwords in tests are as nasty as passwords elsewhere.
fn with_login(url: &str, user: &str, password: &str) -> String {
    let mut url = Url::parse(url).expect("our own URLs are well formed");
    let done = url.set_username(user).and_then(|()| url.set_password(Some(password)));
    done.expect("a URL with a host takes a login");
    url.into()
}
