//! Ends a child process when the test program dies before it could: killed, aborted, or at `exit`
//! with statics alive.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A shell that waits for our end of its pipe to close. However we end, the system closes it.
///
/// Ctrl-C reaches the whole group, so the shell ignores it: it still has the directory to clear.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
read -r _
kill -9 "$1" 2>/dev/null
test -z "$2" || rm -rf -- "$2"
"#;

/// Held beside a child process; let go before the child is reaped, so that its number cannot be
/// another's by then.
#[derive(Debug)]
pub(crate) struct Leash(Child);

impl Leash {
    /// Ties the process `pid`, and the directory that would be left behind, to the life of this
    /// program.
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
        // Before the pipe closes, or the shell would do its work.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
