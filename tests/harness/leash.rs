//! Kills a child process if the test program ends without doing so: killed, aborted, or at `exit`
//! with statics alive.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A shell script that waits until this program's end of the pipe closes. The system closes it
/// however this program ends.
///
/// Ctrl-C reaches the whole process group, so the shell ignores it: it must still remove the
/// directory.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
read -r _
kill -9 "$1" 2>/dev/null
test -z "$2" || rm -rf -- "$2"
"#;

/// The shell process beside a child process. It is dropped before the child is reaped, because
/// afterwards the process id may be reused.
#[derive(Debug)]
pub(crate) struct Leash(Child);

impl Leash {
    /// Ties the process `pid`, and the directory it would leave behind, to this program's life.
    pub(crate) fn tie(pid: u32, directory: Option<&Path>) -> Self {
        let shell = Command::new("sh")
            .args(["-c", SCRIPT, "leash", &pid.to_string()])
            .arg(directory.unwrap_or(Path::new("")))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(shell.expect("`sh` could not be started"))
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        // The shell must die before the pipe closes, or it would kill the child.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
