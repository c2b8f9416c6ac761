//! The compiler, and the libraries that Cargo built for this program.

use std::path::Path;
use std::process::Command;

/// The path of the compiler, and its options that name libraries.
const THIS_PROGRAM: (&str, &[[&str; 2]]) = lockattr_ui_libraries::libraries!();

/// Returns a command that checks a file as `cargo check` does, without code generation.
pub(crate) fn rustc() -> Command {
    checking(Path::new(THIS_PROGRAM.0))
}

/// Returns the same command with the lints of Clippy.
pub(crate) fn clippy() -> Command {
    checking(&Path::new(THIS_PROGRAM.0).with_file_name("clippy-driver"))
}

/// Returns this program's lockattr, as the value of `--extern`.
pub(crate) fn lockattr() -> &'static str {
    let mut values = THIS_PROGRAM.1.iter().map(|[_, value]| *value);
    values.find(|value| is_lockattr(value)).expect("this program was compiled with lockattr")
}

fn checking(compiler: &Path) -> Command {
    let mut command = Command::new(compiler);
    // From there, as from Cargo, the sources of the libraries have the paths that the libraries name.
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    command.args(["--emit=metadata", "--out-dir", concat!(env!("CARGO_TARGET_TMPDIR"), "/ui")]);
    // The messages must not depend on the terminal.
    command.args(["--color=never", "--diagnostic-width=140"]);
    // All libraries but lockattr, whose features the caller chooses.
    command.args(THIS_PROGRAM.1.iter().filter(|[_, value]| !is_lockattr(value)).flatten());
    command
}

fn is_lockattr(value: &str) -> bool {
    value.starts_with("lockattr=")
}
