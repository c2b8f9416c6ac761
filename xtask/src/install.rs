//! Installs system packages, if that needs no password.

use std::process::Command;

use crate::child;

const SCRIPT: &str = include_str!("install.sh");

/// Installs the packages, or returns instructions to do it by hand.
pub(crate) fn install(packages: &[&str]) -> Result<(), String> {
    let mut shell = match way() {
        Ok(shell) => shell,
        Err(reason) => return Err(by_hand(packages, reason)),
    };
    eprintln!("xtask: installing {}", packages.join(", "));
    let status = shell.args(["-c", SCRIPT, "install.sh"]).args(packages).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(by_hand(packages, &format!("apt-get failed ({status})"))),
        Err(error) => Err(by_hand(packages, &format!("no shell to install them with ({error})"))),
    }
}

/// Returns whether installs and downloads are allowed.
pub(crate) fn allowed() -> bool {
    std::env::var_os("LOCKATTR_NO_INSTALL").is_none()
}

/// Returns a shell that may install packages.
fn way() -> Result<Command, &'static str> {
    if !allowed() {
        return Err("LOCKATTR_NO_INSTALL is set");
    }
    if !child::succeeds("apt-get", &["--version"]) {
        return Err("there is no apt-get here");
    }
    let id = Command::new("id").arg("-u").output();
    if id.is_ok_and(|output| output.stdout.trim_ascii() == b"0") {
        return Ok(Command::new("sh"));
    }
    if child::succeeds("sudo", &["-n", "true"]) {
        let mut sudo = Command::new("sudo");
        sudo.args(["-n", "sh"]);
        return Ok(sudo);
    }
    Err("installing needs root, or a `sudo` that asks for no password")
}

fn by_hand(packages: &[&str], reason: &str) -> String {
    let packages = packages.join(" ");
    format!(
        "the tests need {packages}, and {reason}. Install by hand:\n  \
         Debian, Ubuntu    sudo apt-get install {packages}\n  \
         elsewhere         what is the same there (Homebrew, Fedora, Arch: redis or valkey)\n\
         The tests start servers of their own on free ports. None has to run."
    )
}
