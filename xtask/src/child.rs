//! Runs child programs: prints them, runs them at the project's root, and reports their failure.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Returns a `cargo` command with the environment of a terminal.
pub(crate) fn cargo(words: &[&str]) -> Command {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(cargo);
    command.args(words);
    // `cargo run` sets variables for the xtask package. Build scripts that depend on them would run
    // again whenever the tests are started in another way.
    for (name, _) in std::env::vars() {
        let ours = ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| name.starts_with(prefix));
        if ours {
            command.env_remove(name);
        }
    }
    command
}

/// Prints the command, runs it to its end, and returns its failure.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let line = command_line(command);
    eprintln!("xtask: {line}");
    let status = command.current_dir(root()).status();
    let status = status.map_err(|error| format!("`{line}` could not be started: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{line}` failed: {status}")) }
}

/// Returns whether a program can be started and succeeds. Hides its output.
pub(crate) fn succeeds(program: impl AsRef<OsStr>, words: &[&str]) -> bool {
    Command::new(program).args(words).output().is_ok_and(|output| output.status.success())
}

/// Returns the project's root directory.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a directory of the project")
}

/// Returns the command line, without the directory of its program.
pub(crate) fn command_line(command: &Command) -> String {
    let mut line = String::new();
    let set = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    for (name, value) in set {
        line += &format!("{}={} ", name.display(), value.display());
    }
    let program = Path::new(command.get_program());
    line += &program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
    for word in command.get_args() {
        line += &format!(" {}", word.display());
    }
    line
}
