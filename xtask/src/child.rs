//! The programs that a command starts: printed, run at the project's root, and their failure told.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// A `cargo` as if called from the terminal.
pub(crate) fn cargo(words: &[&str]) -> Command {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(cargo);
    command.args(words);
    // `cargo run` told us about our own package. Build scripts that look at such variables would
    // run again each time the tests are called one way and then the other.
    for (name, _) in std::env::vars() {
        let ours = ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| name.starts_with(prefix));
        if ours {
            command.env_remove(name);
        }
    }
    command
}

/// Prints the command, runs it to its end, and makes its failure ours.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let told = tell(command);
    eprintln!("xtask: {told}");
    let status = command.current_dir(root()).status();
    let status = status.map_err(|error| format!("`{told}` could not be started: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{told}` failed: {status}")) }
}

/// Whether a program can be started and succeeds, quietly.
pub(crate) fn succeeds(program: impl AsRef<OsStr>, words: &[&str]) -> bool {
    Command::new(program).args(words).output().is_ok_and(|output| output.status.success())
}

/// The project's own directory.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a directory of the project")
}

/// The command as one would type it, without the directories of its program.
pub(crate) fn tell(command: &Command) -> String {
    let mut told = String::new();
    let set = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    for (name, value) in set {
        told += &format!("{}={} ", name.display(), value.display());
    }
    let program = Path::new(command.get_program());
    told += &program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
    for word in command.get_args() {
        told += &format!(" {}", word.display());
    }
    told
}
