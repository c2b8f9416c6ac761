//! A child process that can be paused, resumed and killed, and that never outlives its owner.

use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;

use crate::leash::Leash;

/// Returns how to install these packages, for an error message.
pub(crate) fn install_hint(packages: &str) -> String {
    format!(
        "`cargo xtask test` installs missing servers if it has the rights to; by hand: `apt-get \
         install {packages}`"
    )
}

/// A child process. Signals are sent by process id, never by name: other tests run the same
/// programs at the same time.
#[derive(Debug)]
pub(crate) struct Process {
    // Declared first, so that it is dropped before the child is reaped.
    leash: Option<Leash>,
    child: Child,
}

impl Process {
    /// Starts `command`. If this program ends first, the child is killed and `directory` removed.
    pub(crate) fn start(command: &mut Command, directory: Option<&Path>) -> std::io::Result<Self> {
        let child = command.spawn()?;
        let leash = Some(Leash::tie(child.id(), directory));
        Ok(Self { leash, child })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the child's exit status, if it has ended.
    pub(crate) fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("the status of our own child can be read")
    }

    pub(crate) fn take_pipes(&mut self) -> (ChildStdin, ChildStdout) {
        let stdin = self.child.stdin.take().expect("stdin is a pipe");
        let stdout = self.child.stdout.take().expect("stdout is a pipe");
        (stdin, stdout)
    }

    /// Pauses the child (SIGSTOP), and returns once it has stopped, or has ended before.
    pub(crate) fn stop(&self) {
        self.signal(Signal::SIGSTOP);
        // The status of a child that has ended is left for `exit_status`.
        let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        waitid(Id::Pid(self.pid()), flags).expect("our own child can be awaited");
    }

    /// Returns whether the child has stopped itself. Each stop is reported once.
    pub(crate) fn has_stopped(&self) -> bool {
        let flags = WaitPidFlag::WUNTRACED | WaitPidFlag::WNOHANG;
        match waitpid(self.pid(), Some(flags)).expect("our own child can be awaited") {
            WaitStatus::Stopped(..) => true,
            WaitStatus::StillAlive => false,
            ended => panic!("the child ended instead of stopping: {ended:?}"),
        }
    }

    /// Interrupts the child (SIGINT).
    pub(crate) fn interrupt(&self) {
        self.signal(Signal::SIGINT);
    }

    /// Resumes the child (SIGCONT).
    pub(crate) fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Kills the child (SIGKILL), and returns once it is gone. The child may be stopped or gone
    /// already.
    pub(crate) fn kill(&mut self) {
        self.leash = None;
        // Both fail only if the child is gone already.
        self.child.kill().ok();
        self.child.wait().ok();
    }

    fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).unwrap_or_else(|error| panic!("{signal} to our child: {error}"));
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.id()).expect("a process id"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
