//! The process group of the command: made before it, and ended as a whole.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use humantime::format_duration;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use crate::exit;
use crate::failure::Failure;

/// How often a group is looked at that is about to end.
const LOOK: Duration = Duration::from_millis(20);

/// A group that outlives neither us nor the lease.
#[derive(Debug)]
pub(super) struct Group {
    /// Leads it; `None` once it is let go.
    leash: Option<Child>,
    id: Pid,
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
        // Nobody's directory is kept busy, and no secret is passed on.
        leash.current_dir("/").env_clear().process_group(0);
        leash.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut leash = Command::from(leash).spawn().map_err(cannot)?;
        let id = leash.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        let id = id.ok_or_else(|| Failure::new(exit::CANNOT_RUN, "its leash has no number"))?;
        let Some(stdout) = &mut leash.stdout else {
            return Err(Failure::new(exit::CANNOT_RUN, "its leash does not speak"));
        };
        // It says one word, once nothing but SIGKILL ends it.
        let _ready = stdout.read_u8().await.map_err(cannot)?;
        Ok(Self { leash: Some(leash), id })
    }

    pub(super) fn id(&self) -> Pid {
        self.id
    }

    /// Starts the command in it.
    pub(super) fn spawn(
        &self,
        command: &[OsString],
        variables: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Result<Child, Failure> {
        // There is one: the arguments are not taken without.
        let program = &command[0];
        let mut child = std::process::Command::new(program);
        child.args(&command[1..]).envs(variables).process_group(self.id.as_raw());
        Command::from(child).spawn().map_err(|error| {
            let code = match error.kind() {
                std::io::ErrorKind::NotFound => exit::NOT_FOUND,
                _ => exit::CANNOT_RUN,
            };
            Failure::new(code, format!("`{}` cannot be run: {error}", program.display()))
        })
    }

    /// Sends a signal to all that are in it.
    pub(super) fn signal(&self, signal: Signal) {
        // It fails where nobody is left to hear it.
        killpg(self.id, signal).ok();
    }

    /// Asks all to end; one that stands still hears it only if it goes on.
    pub(super) fn ask_to_end(&self) {
        self.signal(Signal::SIGTERM);
        self.signal(Signal::SIGCONT);
    }

    /// Takes the leash off. Whether anybody is left without it.
    pub(super) async fn let_go(&mut self) -> bool {
        if let Some(mut leash) = self.leash.take() {
            // By its handle and before its pipe closes, or it would do its work.
            leash.kill().await.ok();
        }
        // As long as somebody is in the group, its number cannot be another's.
        killpg(self.id, None).is_ok()
    }

    /// Waits until nobody is left, and kills who is there at the deadline. What was asked to end
    /// before.
    pub(super) async fn ends_by(&mut self, deadline: Instant) {
        if !self.let_go().await {
            return;
        }
        while Instant::now() < deadline {
            if killpg(self.id, None).is_err() {
                return;
            }
            sleep(LOOK.min(deadline - Instant::now())).await;
        }
        self.signal(Signal::SIGKILL);
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
