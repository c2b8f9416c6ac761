//! Runs a program of tests for a limited time.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::child;

/// Runs a program with its output in a file, and returns the output and whether it has ended. After
/// `limit`, kills the program and the processes that it started, except those that have left its
/// process group.
///
/// Its output is in a file because a server that survives would keep a pipe open.
pub(crate) fn output(
    command: &mut Command,
    file: &Path,
    limit: Duration,
) -> Result<(String, bool), String> {
    let error = |error| format!("{}: {error}", child::command_line(command));
    let out = File::create(file).map_err(error)?;
    let err = out.try_clone().map_err(error)?;
    command.process_group(0).stdin(Stdio::null()).stdout(out).stderr(err);
    let mut started =
        command.spawn().map_err(|error| format!("{}: {error}", child::command_line(command)))?;
    let (id, (ended, ends)) = (started.id(), mpsc::channel());
    let waits = thread::spawn(move || {
        drop(ended.send(started.wait()));
    });
    let has_ended = ends.recv_timeout(limit).is_ok();
    if !has_ended {
        let group = format!("-{id}");
        child::succeeds("kill", &["-KILL", "--", &group]);
    }
    waits.join().expect("waiting does not panic");
    let output = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok((String::from_utf8_lossy(&output).into_owned(), has_ended))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::process::Command;
    use std::time::Duration;

    use super::output;

    fn run(script: &str, limit: Duration) -> (String, bool) {
        let file: PathBuf = format!("lockattr-xtask-{}", std::process::id()).into();
        let file = std::env::temp_dir().join(file);
        let output = output(Command::new("sh").args(["-c", script]), &file, limit).unwrap();
        std::fs::remove_file(file).unwrap();
        output
    }

    /// Red without: the limit, or the process group.
    #[test]
    fn a_program_that_hangs_is_killed_with_its_children() {
        let both = ("one\ntwo\n".to_owned(), true);
        assert_eq!(run("echo one; echo two >&2", Duration::MAX), both);
        // The limit is longer until the script has come as far as it should.
        let limits = (0..).map(|power| Duration::from_millis(100 << power));
        let killed = limits.map(|limit| run("sleep 1000000 & echo $!; wait", limit));
        let (child, has_ended) = { killed }.find(|(output, _)| output.ends_with('\n')).unwrap();
        assert!(!has_ended);
        // Waits until it has ended. It may stay as a zombie until its new parent looks.
        let lives = |state: &String| !state.contains(") Z ");
        let process = format!("/proc/{}/stat", child.trim());
        while std::fs::read_to_string(&process).is_ok_and(|state| lives(&state)) {
            std::thread::yield_now();
        }
    }
}
