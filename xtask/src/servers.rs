//! The servers that tests start: one row each, and how they get onto a machine.

use crate::{child, install};

/// A server program that the tests cannot do without.
struct Server {
    /// Its name on the `PATH`. It must know `--version`.
    program: &'static str,
    /// The environment variable by which the harness is given another.
    variable: &'static str,
    /// The package that brings it, in Debian and its descendants.
    package: &'static str,
}

/// Names the program that speaks the protocol of Redis.
pub(crate) const REDIS: &str = "LOCKATTR_REDIS_SERVER";

const SERVERS: &[Server] =
    &[Server { program: "redis-server", variable: REDIS, package: "redis-server" }];

/// Installs what is missing. An error says what to do by hand.
pub(crate) fn ensure_all() -> Result<(), String> {
    let missing = missing()?;
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().map(|server| server.package).collect();
    install::install(&packages)?;
    for server in missing {
        if !child::succeeds(server.program, &["--version"]) {
            let Server { program, package, .. } = server;
            return Err(format!("{package} is installed, and yet `{program} --version` fails"));
        }
    }
    Ok(())
}

fn missing() -> Result<Vec<&'static Server>, String> {
    let mut missing = Vec::new();
    for server in SERVERS {
        match std::env::var(server.variable) {
            // What somebody chose is not replaced by something else.
            Ok(chosen) if !child::succeeds(&chosen, &["--version"]) => {
                return Err(format!("{}: `{chosen} --version` fails", server.variable));
            }
            Ok(_) => {}
            Err(_) if child::succeeds(server.program, &["--version"]) => {}
            Err(_) => missing.push(server),
        }
    }
    Ok(missing)
}
