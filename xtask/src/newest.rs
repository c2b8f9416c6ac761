//! The newest Redis and Valkey, beside the system's own: unpacked from Debian's packages into
//! `target/servers/`, and not installed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::{child, install};

const SCRIPT: &str = include_str!("newest.sh");

/// After so long there may be newer ones.
const LASTS: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A server program that is newer than the system's.
pub(crate) struct Newest {
    /// The variable that names it to the tests.
    variable: &'static str,
    pub(crate) program: PathBuf,
    /// What it says of itself.
    pub(crate) version: String,
}

impl Newest {
    /// What the environment of the tests has to say of it.
    pub(crate) fn named(&self) -> (&'static str, &Path) {
        (self.variable, &self.program)
    }
}

/// Both of them, or why they cannot be had here.
pub(crate) fn obtain() -> Result<Vec<Newest>, String> {
    let directory = child::root().join("target/servers");
    let old = present(&directory);
    if old.is_ok() && is_fresh(&directory) {
        return old;
    }
    match download(&directory) {
        Ok(()) => present(&directory),
        // Those of last week are better than none.
        Err(reason) => old.map_err(|_| reason),
    }
}

fn present(directory: &Path) -> Result<Vec<Newest>, String> {
    let names =
        [("LOCKATTR_NEWEST_REDIS", "redis-server"), ("LOCKATTR_NEWEST_VALKEY", "valkey-server")];
    let found = names.map(|(variable, name)| {
        let program = directory.join(name);
        let output = Command::new(&program).arg("--version").output();
        match output {
            Ok(output) if output.status.success() => {
                let told = String::from_utf8_lossy(&output.stdout);
                // `Redis server v=8.6.3 sha=…`
                let version = told.split(" sha=").next().unwrap_or_default().trim().to_owned();
                Ok(Newest { variable, program, version })
            }
            _ => Err(format!("`{} --version` fails", program.display())),
        }
    });
    found.into_iter().collect()
}

fn is_fresh(directory: &Path) -> bool {
    let written = directory.join("valkey-server").metadata().and_then(|file| file.modified());
    let age = written.ok().and_then(|written| written.elapsed().ok());
    age.is_some_and(|age| age < LASTS)
}

fn download(directory: &Path) -> Result<(), String> {
    if !install::allowed() {
        return Err("LOCKATTR_NO_INSTALL is set".to_owned());
    }
    for tool in ["apt-get", "dpkg-deb"] {
        if !child::succeeds(tool, &["--version"]) {
            return Err(format!("this is no Debian: there is no {tool}"));
        }
    }
    eprintln!("xtask: unpacking the newest Redis and Valkey into {}", directory.display());
    let output = Command::new("sh").args(["-c", SCRIPT, "newest.sh"]).arg(directory).output();
    let output = output.map_err(|error| format!("no shell to download them with ({error})"))?;
    if output.status.success() {
        return Ok(());
    }
    let told = String::from_utf8_lossy(&output.stderr);
    Err(told.trim().lines().last().unwrap_or("the download failed").to_owned())
}
