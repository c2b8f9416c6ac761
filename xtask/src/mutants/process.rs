//! Runs a program of tests for a limited time.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::child;

/// Runs a program with its output in a file, and returns the output. After `limit`, kills the program
/// and the processes that it started, except those that have left its process group.
///
/// Its output is in a file because a server that survives would keep a pipe open.
pub(crate) fn output(
    command: &mut Command,
    file: &Path,
    limit: Duration,
) -> Result<String, String> {
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
    let is_late = ends.recv_timeout(limit).is_err();
    if is_late {
        let group = format!("-{id}");
        child::succeeds("kill", &["-KILL", "--", &group]);
    }
    waits.join().expect("waiting does not panic");
    let output = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut output = String::from_utf8_lossy(&output).into_owned();
    if is_late {
        output += &format!("killed after {limit:?}\n");
    }
    Ok(output)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::process::Command;
    use std::time::Duration;

    use super::output;

    fn run(script: &str, limit: Duration) -> String {
        let file: PathBuf = format!("lockattr-xtask-{}", std::process::id()).into();
        let file = std::env::temp_dir().join(file);
        let output = output(Command::new("sh").args(["-c", script]), &file, limit).unwrap();
        std::fs::remove_file(file).unwrap();
        output
    }

    /// Red without: the limit, or the process group.
    #[test]
    fn a_program_that_hangs_is_killed_with_its_children() {
        assert_eq!(run("echo one; echo two >&2", Duration::MAX), "one\ntwo\n");
        // The limit is longer until the script has come as far as it should.
        let limits = (0..).map(|power| Duration::from_millis(100 << power));
        let killed = limits.map(|limit| run("sleep 1000000 & echo $!; wait", limit));
        let killed = killed.map(|it| it.lines().map(str::to_owned).collect::<Vec<_>>());
        let Some([child, end]) = killed.map(<[_; 2]>::try_from).find_map(Result::ok) else {
            unreachable!("there is always a longer limit")
        };
        assert!(end.starts_with("killed after "), "{end}");
        // Waits until it has ended. It may stay as a zombie until its new parent looks.
        let lives = |state: &String| !state.contains(") Z ");
        let process = format!("/proc/{child}/stat");
        while std::fs::read_to_string(&process).is_ok_and(|state| lives(&state)) {
            std::thread::yield_now();
        }
    }
}
