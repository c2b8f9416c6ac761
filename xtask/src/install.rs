//! Installs system packages, if that needs no password.

use std::process::Command;

use crate::child;

const SCRIPT: &str = include_str!("install.sh");

/// Installs the packages, or returns instructions to do it by hand.
pub(crate) fn install(packages: &[&str]) -> Result<(), String> {
    let mut shell = match privileged_shell() {
        Ok(shell) => shell,
        Err(reason) => return Err(instructions(packages, reason)),
    };
    eprintln!("xtask: installing {}", packages.join(", "));
    let status = shell.args(["-c", SCRIPT, "install.sh"]).args(packages).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(instructions(packages, &format!("apt-get failed ({status})"))),
        Err(error) => Err(instructions(packages, &format!("`sh` could not be started ({error})"))),
    }
}

/// Returns whether installs and downloads are allowed.
pub(crate) fn allowed() -> bool {
    std::env::var_os("LOCKATTR_NO_INSTALL").is_none()
}

/// Returns a shell that may install packages.
fn privileged_shell() -> Result<Command, &'static str> {
    if !allowed() {
        return Err("LOCKATTR_NO_INSTALL is set");
    }
    if !child::succeeds("apt-get", &["--version"]) {
        return Err("there is no apt-get on this machine");
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
    Err("xtask can install them only as root or with a `sudo` that needs no password")
}

fn instructions(packages: &[&str], reason: &str) -> String {
    let packages = packages.join(" ");
    format!(
        "the tests need {packages}, but {reason}. Install by hand:\n  \
         Debian, Ubuntu    sudo apt-get install {packages}\n  \
         other systems     the equivalent packages (Homebrew, Fedora, Arch: redis or valkey)\n\
         The tests start their own servers on free ports; no server needs to run."
    )
}
