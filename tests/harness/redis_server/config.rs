//! The server's `redis.conf`, written from the builder's settings.

use std::path::Path;

use super::builder::{Mode, RedisServerBuilder};
use crate::authority::{CA, LEAF, LEAF_KEY};
use crate::port::Port;

pub(super) const FILE: &str = "redis.conf";
pub(super) const SOCKET: &str = "redis.sock";
pub(super) const LOG: &str = "redis.log";

/// The builder's settings, and the ports reserved for them.
#[derive(Debug)]
pub(super) struct Config {
    settings: RedisServerBuilder,
    port: Port,
    tls_port: Option<Port>,
    bus_port: Option<Port>,
}

impl Config {
    pub(super) fn new(settings: RedisServerBuilder) -> Self {
        let port = Port::free();
        let tls_port = settings.authority.is_some().then(Port::free);
        // The default is `port` + 10000, which is in the range of outgoing connections.
        let bus_port = (settings.mode == Mode::ClusterNode).then(Port::free);
        Self { settings, port, tls_port, bus_port }
    }

    pub(super) fn port(&self) -> u16 {
        self.port.number()
    }

    pub(super) fn tls_port(&self) -> Option<u16> {
        self.tls_port.as_ref().map(Port::number)
    }

    pub(super) fn bus_port(&self) -> Option<u16> {
        self.bus_port.as_ref().map(Port::number)
    }

    /// Returns the port by which other servers reach this one.
    pub(super) fn peer_port(&self) -> u16 {
        self.tls_port().filter(|_| self.settings.tls_among_servers).unwrap_or(self.port())
    }

    pub(super) fn password(&self) -> Option<&str> {
        self.settings.password.as_deref()
    }

    pub(super) fn program(&self) -> Option<&Path> {
        self.settings.program.as_deref()
    }

    pub(super) fn is_sentinel(&self) -> bool {
        self.settings.mode == Mode::Sentinel
    }

    /// Writes `redis.conf`, and the certificates it names, into `directory`.
    pub(super) fn write(&self, directory: &Path) {
        if let Some(authority) = &self.settings.authority {
            authority.write_into(directory);
        }
        let file = directory.join(FILE);
        std::fs::write(file, self.text(directory)).expect("the server's directory is writable");
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
            format!("appendonly {}", yes_or_no(self.settings.appendonly)),
            "appendfsync always".to_owned(),
            // Copy to a new replica at once. The default waits five seconds for more replicas.
            "repl-diskless-sync-delay 0".to_owned(),
        ];
        if let Some(password) = &self.settings.password {
            lines.push(format!("requirepass {}", quoted(password)));
            // A master needs it too: it returns as a replica after a failover.
            lines.push(format!("masterauth {}", quoted(password)));
        }
        for (name, password, rules) in &self.settings.users {
            lines.push(format!("user {name} on {} {rules}", quoted(&format!(">{password}"))));
        }
        if let Some(port) = &self.tls_port {
            lines.push(format!("tls-port {port}"));
            lines.push(format!("tls-auth-clients {}", yes_or_no(self.settings.tls_clients)));
            lines.push(format!("tls-ca-cert-file {}", path(CA)));
            lines.push(format!("tls-cert-file {}", path(LEAF)));
            lines.push(format!("tls-key-file {}", path(LEAF_KEY)));
            lines.push(format!("tls-replication {}", yes_or_no(self.settings.tls_among_servers)));
        }
        if let Some(port) = &self.bus_port {
            lines.push("cluster-enabled yes".to_owned());
            lines.push(format!("cluster-port {port}"));
            lines.push(format!("tls-cluster {}", yes_or_no(self.settings.tls_among_servers)));
        }
        lines.extend(self.settings.lines.iter().cloned());
        lines.join("\n") + "\n"
    }
}

fn yes_or_no(enabled: bool) -> &'static str {
    if enabled { "yes" } else { "no" }
}

/// Quotes a word for `redis.conf`, which has the escapes of C strings.
pub(crate) fn quoted(word: &str) -> String {
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
