//! The process group of the command: made before it, and ended as a whole.

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

/// Where the command stands in a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It has the keyboard, or there is none.
    Front,
    /// It reads nothing, and is not stopped if it tries.
    Back,
}

/// A group that outlives neither us nor the lease.
#[derive(Debug)]
pub(super) struct Group {
    /// Leads it; `None` once it is let go.
    leash: Option<Child>,
    reach: Reach,
}

impl Group {
    /// A group with nothing in it but the process that ends it `kill_after` this one has died.
    pub(super) async fn start(kill_after: Duration) -> Result<Self, Failure> {
        let cannot =
            |error| Failure::new(exit::CANNOT_RUN, format!("its leash was not started: {error}"));
        let mut leash = std::process::Command::new(ourselves().map_err(cannot)?);
        // For who lists processes.
        leash
            .arg0("lockattr")
            .arg("leash")
            .args(["--kill-after", &format!("{}ms", kill_after.as_millis())]);
        // No process's directory is kept busy, and no secret is passed on.
        leash.current_dir("/").env_clear().process_group(0);
        leash.stdin(Stdio::piped()).stdout(Stdio::piped());
        // A background process that reads has its whole group stopped.
        let leash = unstopped(|| Command::from(leash).spawn());
        let mut leash = leash.map_err(cannot)?;
        let id = leash.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        let id = id.ok_or_else(|| Failure::new(exit::CANNOT_RUN, "its leash has no number"))?;
        let Some(stdout) = &mut leash.stdout else {
            return Err(Failure::new(exit::CANNOT_RUN, "its leash does not speak"));
        };
        // It says one word, once nothing but SIGKILL ends it.
        let _ready = stdout.read_u8().await.map_err(cannot)?;
        Ok(Self { leash: Some(leash), reach: Reach::of(id) })
    }

    pub(super) fn id(&self) -> Pid {
        self.reach.group()
    }

    /// Starts the command in it, and tells the leash its number: it may leave.
    pub(super) async fn spawn(
        &mut self,
        command: &[OsString],
        variables: impl IntoIterator<Item = (&'static str, String)>,
        place: Place,
    ) -> Result<Child, Failure> {
        // There is one: the arguments are not taken without.
        let program = &command[0];
        let mut child = match place {
            Place::Front => std::process::Command::new(program),
            Place::Back => {
                let mut shell = std::process::Command::new("/bin/sh");
                // What is blocked and not ignored is not so for what a shell starts.
                shell.args(["-c", "trap '' TTIN TTOU; exec \"$@\"", "lockattr"]).arg(program);
                shell
            }
        };
        child.args(&command[1..]).envs(variables).process_group(self.id().as_raw());
        let child = Command::from(child).spawn().map_err(|error| {
            let code = match error.kind() {
                std::io::ErrorKind::NotFound => exit::NOT_FOUND,
                _ => exit::CANNOT_RUN,
            };
            Failure::new(code, format!("`{}` cannot be run: {error}", program.display()))
        })?;
        if let Some(number) = child.id().and_then(|id| i32::try_from(id).ok()) {
            self.reach.is_for(Pid::from_raw(number));
            if let Some(told) = self.leash.as_mut().and_then(|leash| leash.stdin.as_mut()) {
                // It fails only if the leash was killed.
                told.write_i32(number).await.ok();
            }
        }
        Ok(child)
    }

    /// Whom signals reach.
    pub(super) fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Whether no process of it is left, the command included.
    pub(super) async fn has_ended(&mut self, command: &mut Child) -> bool {
        // What cannot be asked for is not there.
        let has_ended = !matches!(command.try_wait(), Ok(None));
        has_ended && !self.let_go().await
    }

    /// Takes the leash off once the command has ended, or was not started. Whether anybody is left
    /// without it.
    pub(super) async fn let_go(&mut self) -> bool {
        if let Some(mut leash) = self.leash.take() {
            // By its handle and before its pipe closes, or it would do its work.
            leash.kill().await.ok();
        }
        // As long as somebody is in a group, its number cannot be another's.
        self.reach.left_behind()
    }
}

/// This program, also where its file was replaced since.
fn ourselves() -> std::io::Result<PathBuf> {
    let running = PathBuf::from("/proc/self/exe");
    if running.exists() { Ok(running) } else { std::env::current_exe() }
}

/// What is said of it when a lease is lost.
pub(super) fn farewell(kill_after: Duration) -> String {
    match kill_after {
        Duration::ZERO => "SIGKILL to the command's group".to_owned(),
        _ => {
            let kill_after = format_duration(kill_after);
            format!("SIGTERM to the command's group, SIGKILL in {kill_after}")
        }
    }
}
