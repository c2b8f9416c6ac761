//! lockattr without its features, for the messages about a feature that is missing.

use std::sync::LazyLock;

use crate::compiler;

/// Returns it as the value of `--extern`.
pub(crate) fn lockattr() -> &'static str {
    static BUILT: LazyLock<String> = LazyLock::new(build);
    &BUILT
}

/// Cargo builds one lockattr for all packages of the workspace, with the features of all of them. So
/// this compiles the sources again, with libraries that are dev-dependencies of this package.
fn build() -> String {
    let mut rustc = compiler::rustc();
    rustc.args(["lockattr/src/lib.rs", "--crate-type=lib", "--crate-name=lockattr"]);
    rustc.args(["--edition=2024", "--cap-lints=allow"]);
    let output = rustc.output().expect("the compiler starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "If it finds no crate, add lockattr's dependency to `tests/ui/Cargo.toml`.\n{stderr}"
    );
    concat!("lockattr=", env!("CARGO_TARGET_TMPDIR"), "/ui/liblockattr.rmeta").to_owned()
}
