//! `lockattr run`: a command that runs only while its lock is held.

mod foreground;
mod group;
mod leash;
mod presence;
mod reach;
mod signals;
mod supervision;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use clap::Args;
use lockattr::{Error, LockGuard, LockManager, LockOptions};

use crate::failure::{Failure, report};
use crate::store::{self, StoreUrl};
use crate::{URL_VARIABLE, exit, span};
use group::Group;
pub(crate) use leash::Leash;
pub(crate) use signals::Signals;
use supervision::End;

/// The pause between two checks for remaining processes.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

const AFTER: &str = "\
The lock is acquired before COMMAND starts, renewed while it runs, and released when it has ended. \
COMMAND inherits stdin, stdout and stderr, and runs in its own process group with two more environment \
variables: LOCKATTR_KEY, and LOCKATTR_FENCING_TOKEN, a number greater than in every earlier run, which \
COMMAND can send along with its writes. It does not have LOCKATTR_URL, which may contain a password; with \
--pass-url it does.

Lost: if the lease is lost (the store was down for too long, an operator took the lock, --max-hold), \
the whole process group gets SIGTERM, and SIGKILL after --kill-after, grandchildren included. So does \
the group of a COMMAND that creates its own, as `timeout` does. If `lockattr run` itself is killed with \
SIGKILL, they end in the same way, and the lock is free after the TTL.

Out of reach: processes that COMMAND puts into another group or session (`timeout` or `setsid` in a \
script, daemons, the jobs of an interactive shell), and processes of another user (`sudo`). They \
continue without the lock. `timeout --foreground` stays in the group.

Signals: SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on to the same processes; the \
lock is released once COMMAND has ended. Ctrl-Z does not suspend it, because the lease would expire.

Terminal: COMMAND reads from the keyboard while it runs, unless stdout or stderr is a pipe: in \
`lockattr run … | less`, the keyboard belongs to `less`. There, and in the background, reading from the \
terminal is an error for COMMAND, and does not stop it.

Background: processes that COMMAND leaves running when it ends are reported on stderr, and continue \
without the lock.

Busy: exit code 75, and one line that names the holder; with 0, `&&` would take the command for run. \
If another machine is expected to hold the lock, as in a crontab on many machines, `--busy-exit 0` \
skips the run without output, so that cron sends no mail.

Once: with --once-per, a COMMAND that exits with 0 makes the key done. Until the time is over, every run on \
every machine exits as if the lock were busy, and prints when the time ends. Any other exit code leaves the key open. For a job \
of each night write 22h: the time counts from the start of the run, and the night in which the clocks go forward comes \
after 23 hours. `lockattr release --force KEY` \
reopens the key.

Exit codes:
  that of COMMAND, and 128 + N if signal N ended it
    2  the arguments are invalid
   69  the store could not be reached: COMMAND did not run, or its key is not known to be done
   75  another holder has the lock, or the key is done: COMMAND did not run (--busy-exit)
   76  the lease was lost: COMMAND was ended, or not started
  126  COMMAND could not be started
  127  COMMAND was not found

Examples, the last for a crontab:
  lockattr run nightly -- ./report.sh
  lockattr run --wait 5m deploy -- ./deploy.sh
  0 3 * * * lockattr run --busy-exit 0 --once-per 22h nightly -- /opt/report.sh";

/// Run a command while its lock is held: a cron job on one machine only
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Run {
    /// The key, as the services write it, without the prefix
    key: String,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// How long other holders are excluded if this machine crashes [default: that of the URL, or 10s]
    #[arg(long, value_parser = span::parse, value_name = "TIME")]
    ttl: Option<Duration>,
    /// How long to wait while another holder has the lock
    #[arg(long, value_parser = span::parse, default_value = "0s", value_name = "TIME")]
    wait: Duration,
    /// Longest time that COMMAND may run; then the lease is lost
    #[arg(long, value_parser = span::parse, value_name = "TIME")]
    max_hold: Option<Duration>,
    /// After a shorter COMMAND, keep the lock held until this has passed: for clocks that differ
    #[arg(long, value_parser = span::parse, value_name = "TIME")]
    hold_at_least: Option<Duration>,
    /// After a COMMAND that exited with 0, run it on no machine until this has passed since its start
    #[arg(long, value_parser = span::parse, value_name = "TIME")]
    once_per: Option<Duration>,
    /// The time from SIGTERM to SIGKILL once the lease is lost
    #[arg(long, value_parser = span::parse, default_value = "10s", value_name = "TIME")]
    kill_after: Duration,
    /// The exit code if another holder has the lock or the key is done; with 0, nothing is printed either
    #[arg(long, default_value_t = exit::BUSY, value_name = "N")]
    busy_exit: u8,
    /// Leave `LOCKATTR_URL` in the environment of COMMAND, with its password: for a program that uses lockattr
    #[arg(long)]
    pass_url: bool,
}

impl Run {
    pub(crate) async fn execute(self, url: Option<StoreUrl>) -> Result<u8, Failure> {
        let mut signals = Signals::new()?;
        // A command that waits can also wait for a store that is down.
        let manager = match self.wait {
            Duration::ZERO => store::connect(url).await,
            _ => store::build(url),
        };
        let manager = manager.map_err(|error| Failure::of_run(&error))?;
        if let Some(period) = self.once_per {
            manager.check_once_per(period).map_err(|error| Failure::of_run(&error))?;
        }
        let done = self.with(&manager, &mut signals).await;
        // Retries releases without an answer, and leaves the store's wait queue.
        store::leave(&manager, &mut signals).await;
        done
    }

    async fn with(&self, manager: &LockManager, signals: &mut Signals) -> Result<u8, Failure> {
        let guard = tokio::select! {
            guard = manager.acquire(&self.key, self.options()) => guard,
            signal = signals.next() => return Ok(exit::by_signal(signal as i32)),
        };
        match guard {
            Ok(guard) => self.under(guard, signals).await,
            Err(Error::Contended { .. } | Error::Done { .. }) if self.busy_exit == exit::OK => {
                Ok(exit::OK)
            }
            Err(error @ (Error::Contended { .. } | Error::Done { .. })) => {
                Err(Failure::new(self.busy_exit, error.to_string()))
            }
            Err(error) => Err(Failure::of_run(&error)),
        }
    }

    /// The lease, the wait budget and the holder's label: the program's name only, as its arguments
    /// may contain a password.
    fn options(&self) -> LockOptions {
        let program = Path::new(&self.command[0]).file_name().unwrap_or(&self.command[0]);
        let program = program.to_string_lossy().into_owned();
        // Leaked only once in this process.
        let mut options = LockOptions::new().wait(self.wait).function(program.leak());
        if let Some(ttl) = self.ttl {
            options = options.ttl(ttl);
        }
        if let Some(max_hold) = self.max_hold {
            options = options.max_hold(max_hold);
        }
        if let Some(hold_at_least) = self.hold_at_least {
            options = options.hold_at_least(hold_at_least);
        }
        options
    }

    async fn under(&self, guard: LockGuard, signals: &mut Signals) -> Result<u8, Failure> {
        let done = self.supervised(&guard, signals).await;
        let is_ok = matches!(&done, Ok(End::Exited(status)) if status.success());
        let released = match self.once_per.filter(|_| is_ok) {
            Some(period) => {
                let marked = guard.release_done(period).await;
                if let Err(error @ Error::Store { .. }) = marked {
                    return Err(Failure::of_run(&error));
                }
                marked
            }
            None => guard.release().await,
        };
        match (done, released) {
            // Already reported when it happened.
            (Ok(End::Lost), _) => Ok(exit::LOST),
            (Ok(End::Exited(_)), Err(error @ Error::Lost { .. })) => {
                Err(Failure::new(exit::LOST, error.to_string()))
            }
            (Ok(End::Exited(status)), Err(error)) => {
                report(&format!(
                    "the command has ended, and its lock is held until its lease \
                     expires: {error}"
                ));
                Ok(code(status))
            }
            (Ok(End::Exited(status)), Ok(())) => Ok(code(status)),
            (Err(failure), _) => Err(failure),
        }
    }

    /// Runs the command until it and all processes that have to end with it have ended.
    async fn supervised(&self, guard: &LockGuard, signals: &mut Signals) -> Result<End, Failure> {
        let group = Group::start(self.orphan_kill_after(guard)).await?;
        let token = u64::from(guard.fencing_token()).to_string();
        let mut variables = vec![
            ("LOCKATTR_KEY", Some(guard.key().to_owned())),
            ("LOCKATTR_FENCING_TOKEN", Some(token)),
        ];
        if !self.pass_url {
            // A command may print its environment into a log.
            variables.push((URL_VARIABLE, None));
        }
        supervision::of(guard, group, signals, &self.command, variables, self.kill_after).await
    }

    /// The time from SIGTERM to SIGKILL if this process dies. Then no process renews the lease, and
    /// the last renewal was at least a third of the TTL ago.
    fn orphan_kill_after(&self, guard: &LockGuard) -> Duration {
        self.kill_after.min(guard.remaining() / 2)
    }
}

/// The exit code that shells derive from the command's status.
fn code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(u8::MAX),
        (None, Some(signal)) => exit::by_signal(signal),
        // Does not happen on Unix.
        (None, None) => u8::MAX,
    }
}
