//! The process group of the command: created before it, and ended as a whole.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use humantime::format_duration;
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use super::reach::Reach;
use crate::background::unstopped;
use crate::exit;
use crate::failure::Failure;

/// The place of the command in a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It has the foreground, or there is no terminal.
    Front,
    /// It cannot read, and is not stopped if it tries.
    Back,
}

/// A variable of the command's environment, and its value; `None` removes it.
pub(super) type Variable = (&'static str, Option<String>);

/// A group that outlives neither this process nor the lease.
#[derive(Debug)]
pub(super) struct Group {
    /// The leader of the group; `None` once it is removed.
    leash: Option<Child>,
    reach: Reach,
}

impl Group {
    /// A group that contains only the leash, which ends the group within `kill_after` of this
    /// process's death.
    pub(super) async fn start(kill_after: Duration) -> Result<Self, Failure> {
        let cannot_run = |error| {
            Failure::new(
                exit::CANNOT_RUN,
                format!(
                    "the leash process could not be \
                 started: {error}"
                ),
            )
        };
        let mut leash = std::process::Command::new(ourselves().map_err(cannot_run)?);
        // The name in process lists.
        leash
            .arg0("lockattr")
            .arg("leash")
            .args(["--kill-after", &format!("{}ms", kill_after.as_millis())]);
        // Keeps no directory busy, and passes on no secret.
        leash.current_dir("/").env_clear().process_group(0);
        leash.stdin(Stdio::piped()).stdout(Stdio::piped());
        // A background process that reads has its whole group stopped.
        let leash = unstopped(|| Command::from(leash).spawn());
        let mut leash = leash.map_err(cannot_run)?;
        let id = leash.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        let id = id.ok_or_else(|| {
            Failure::new(
                exit::CANNOT_RUN,
                "the leash process has ended \
             already",
            )
        })?;
        let Some(stdout) = &mut leash.stdout else {
            return Err(Failure::new(exit::CANNOT_RUN, "the leash process has no stdout"));
        };
        // It writes one byte as soon as only SIGKILL can end it.
        let _ready = stdout.read_u8().await.map_err(cannot_run)?;
        Ok(Self { leash: Some(leash), reach: Reach::of(id) })
    }

    pub(super) fn id(&self) -> Pid {
        self.reach.group()
    }

    /// Starts the command in the group, and sends its process ID to the leash, because the command
    /// may leave the group.
    pub(super) async fn spawn(
        &mut self,
        command: &[OsString],
        variables: Vec<Variable>,
        place: Place,
    ) -> Result<Child, Failure> {
        // Never empty: the arguments are refused without a command.
        let program = &command[0];
        let mut child = match place {
            Place::Front => std::process::Command::new(program),
            Place::Back => {
                let mut shell = std::process::Command::new("/bin/sh");
                // Ignored, not blocked: what a shell starts does not inherit blocked signals.
                shell.args(["-c", "trap '' TTIN TTOU; exec \"$@\"", "lockattr"]).arg(program);
                shell
            }
        };
        child.args(&command[1..]).process_group(self.id().as_raw());
        for (name, value) in variables {
            match value {
                Some(value) => child.env(name, value),
                None => child.env_remove(name),
            };
        }
        let child = Command::from(child).spawn().map_err(|error| {
            let code = match error.kind() {
                std::io::ErrorKind::NotFound => exit::NOT_FOUND,
                _ => exit::CANNOT_RUN,
            };
            Failure::new(code, format!("`{}` cannot be run: {error}", program.display()))
        })?;
        if let Some(pid) = child.id().and_then(|id| i32::try_from(id).ok()) {
            self.reach.set_command(Pid::from_raw(pid));
            if let Some(stdin) = self.leash.as_mut().and_then(|leash| leash.stdin.as_mut()) {
                stdin.write_i32(pid).await.ok();
            }
        }
        Ok(child)
    }

    pub(super) fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Whether no process of the group is left, the command included.
    pub(super) async fn has_ended(&mut self, command: &mut Child) -> bool {
        // A command whose status cannot be read is gone.
        let has_ended = !matches!(command.try_wait(), Ok(None));
        has_ended && !self.remove_leash().await
    }

    /// Ends the leash after the command has ended or was not started. Returns whether other
    /// processes are left.
    pub(super) async fn remove_leash(&mut self) -> bool {
        if let Some(mut leash) = self.leash.take() {
            // Killed before its pipe closes, or it would end the group.
            leash.kill().await.ok();
        }
        // While a process is in a group, the group's ID is not reused.
        self.reach.has_leftovers()
    }
}

/// The path of this program, even if its file was replaced meanwhile.
fn ourselves() -> std::io::Result<PathBuf> {
    let running = PathBuf::from("/proc/self/exe");
    if running.exists() { Ok(running) } else { std::env::current_exe() }
}

/// The message about the group when a lease is lost.
pub(super) fn kill_notice(kill_after: Duration) -> String {
    match kill_after {
        Duration::ZERO => "SIGKILL to the command's group".to_owned(),
        _ => {
            let kill_after = format_duration(kill_after);
            format!("SIGTERM to the command's group, SIGKILL in {kill_after}")
        }
    }
}
