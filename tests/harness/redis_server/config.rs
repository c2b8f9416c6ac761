//! What a server is started with: the builder's wishes, and the file that Redis reads.

use std::path::Path;

use super::{RedisServer, launch, tls};
use crate::port::free_port;

pub(super) const FILE: &str = "redis.conf";
pub(super) const SOCKET: &str = "redis.sock";
pub(super) const LOG: &str = "redis.log";

/// Wishes for a [`RedisServer`].
#[derive(Debug, Default, Clone)]
#[must_use = "a builder starts nothing before `start()`"]
pub struct RedisServerBuilder {
    password: Option<String>,
    users: Vec<(String, String, String)>,
    tls: bool,
    appendonly: bool,
    lines: Vec<String>,
}

impl RedisServerBuilder {
    /// The default user's password; it is in every URL of the server but the socket's.
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// One more user, with the rules of `ACL SETUSER`: `user("app", "secret", "~lock:* &* +@all
    /// -@admin")`.
    pub fn user(mut self, name: &str, password: &str, rules: &str) -> Self {
        self.users.push((name.to_owned(), password.to_owned(), rules.to_owned()));
        self
    }

    /// A second port that speaks TLS, with a certificate for `localhost` and `127.0.0.1` from an
    /// authority of its own.
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Every write is on disk before it is answered, so [`RedisServer::revive`] brings all back.
    pub fn appendonly(mut self) -> Self {
        self.appendonly = true;
        self
    }

    /// Any other line of `redis.conf`, such as `maxmemory 2mb`.
    pub fn line(mut self, line: &str) -> Self {
        self.lines.push(line.to_owned());
        self
    }

    /// Starts the server and returns once it answers.
    ///
    /// # Panics
    ///
    /// As [`RedisServer::start`] does.
    pub async fn start(self) -> RedisServer {
        launch::launch(self).await
    }
}

/// The builder's wishes with the ports found for them.
#[derive(Debug)]
pub(super) struct Config {
    wishes: RedisServerBuilder,
    port: u16,
    tls_port: Option<u16>,
}

impl Config {
    pub(super) fn with_free_ports(wishes: RedisServerBuilder) -> Self {
        let port = free_port();
        let tls_port = wishes.tls.then(free_port);
        Self { wishes, port, tls_port }
    }

    /// For the next try, after somebody was quicker to bind.
    pub(super) fn with_other_ports(self) -> Self {
        Self::with_free_ports(self.wishes)
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn tls_port(&self) -> Option<u16> {
        self.tls_port
    }

    pub(super) fn password(&self) -> Option<&str> {
        self.wishes.password.as_deref()
    }

    /// Writes `redis.conf`, and the certificates it names, into `directory`.
    pub(super) fn write(&self, directory: &Path) {
        if self.tls_port.is_some() {
            tls::write_certificates(directory);
        }
        let file = directory.join(FILE);
        std::fs::write(file, self.text(directory)).expect("the server's directory takes files");
    }

    fn text(&self, directory: &Path) -> String {
        let path = |name: &str| quoted(&directory.join(name).display().to_string());
        let mut lines = vec![
            "bind 127.0.0.1".to_owned(),
            format!("port {}", self.port),
            format!("dir {}", path("")),
            format!("unixsocket {}", path(SOCKET)),
            format!("logfile {}", path(LOG)),
            r#"save """#.to_owned(),
            format!("appendonly {}", if self.wishes.appendonly { "yes" } else { "no" }),
            "appendfsync always".to_owned(),
        ];
        if let Some(password) = &self.wishes.password {
            lines.push(format!("requirepass {}", quoted(password)));
        }
        for (name, password, rules) in &self.wishes.users {
            lines.push(format!("user {name} on {} {rules}", quoted(&format!(">{password}"))));
        }
        if let Some(port) = self.tls_port {
            lines.push(format!("tls-port {port}"));
            lines.push("tls-auth-clients no".to_owned());
            lines.push(format!("tls-ca-cert-file {}", path(tls::CA)));
            lines.push(format!("tls-cert-file {}", path(tls::LEAF)));
            lines.push(format!("tls-key-file {}", path(tls::LEAF_KEY)));
        }
        lines.extend(self.wishes.lines.iter().cloned());
        lines.join("\n") + "\n"
    }
}

/// Redis reads a quoted word as C would.
fn quoted(word: &str) -> String {
    let mut quoted = String::from('"');
    for character in word.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}
