//! A terminal: a pseudo-terminal of the system, and the content of its screen.

use std::num::NonZeroU16;
use std::path::Path;

use lockattr_tests::HUNG;
use pty_process::{Command, Pty, Size};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Child;
use tokio::time::timeout;

use crate::support::PROGRAM;

pub(crate) const WIDTH: u16 = 110;
pub(crate) const HEIGHT: u16 = 26;

/// A background job inherits an ignored SIGINT, and so would every program in the terminal: Ctrl-C would
/// have no effect.
#[cfg(target_os = "linux")]
fn interactive_shell() -> Command {
    Command::new("env").args(["--default-signal=INT,QUIT", "sh", "-i"])
}

#[cfg(not(target_os = "linux"))]
fn interactive_shell() -> Command {
    Command::new("sh").arg("-i")
}

/// A shell in a terminal. Dropping it ends the programs that run in it.
pub(crate) struct Terminal {
    pty: Pty,
    seen: vt100::Parser,
    _shell: Child,
}

impl Terminal {
    /// Starts a shell with this build of `lockattr`, and with this store.
    pub(crate) async fn shell(url: &str) -> Self {
        let (pty, pts) = pty_process::open().expect("a pseudo-terminal");
        pty.resize(Size::new(HEIGHT, WIDTH)).expect("a size");
        let directory = Path::new(PROGRAM).parent().expect("a directory");
        let path = std::env::var("PATH").unwrap_or_default();
        let shell = interactive_shell()
            .env("PATH", format!("{}:{path}", directory.display()))
            .env("LOCKATTR_URL", url)
            .env("PS1", "$ ")
            .env("TERM", "xterm-256color")
            .env_remove("ENV")
            .kill_on_drop(true)
            .spawn(pts)
            .expect("sh");
        let sized = |size| NonZeroU16::new(size).expect("not zero");
        let seen = vt100::Parser::new(sized(HEIGHT), sized(WIDTH), 0);
        let mut terminal = Self { pty, seen, _shell: shell };
        terminal.prompts().await;
        terminal
    }

    /// Types the keys.
    pub(crate) async fn types(&mut self, keys: &str) {
        self.pty.write_all(keys.as_bytes()).await.expect("a terminal that takes keys");
    }

    /// Waits until this text is on the screen; lines have no trailing spaces.
    #[track_caller]
    pub(crate) fn shows(&mut self, text: &str) -> impl Future<Output = ()> {
        let location = std::panic::Location::caller();
        async move {
            if timeout(HUNG, self.read_until(|screen| screen.contains(text))).await.is_err() {
                panic!("{location}: no {text:?} on the screen:\n{}", self.text());
            }
        }
    }

    /// Waits until the last line is the shell's prompt.
    #[track_caller]
    pub(crate) fn prompts(&mut self) -> impl Future<Output = ()> {
        self.until(|screen| screen.ends_with("\n$ ") || screen.ends_with("\n$"))
    }

    /// Waits until the screen satisfies `is_shown`.
    #[track_caller]
    pub(crate) fn until(&mut self, is_shown: impl Fn(&str) -> bool) -> impl Future<Output = ()> {
        let location = std::panic::Location::caller();
        async move {
            if timeout(HUNG, self.read_until(is_shown)).await.is_err() {
                panic!("{location}: not on the screen:\n{}", self.text());
            }
        }
    }

    async fn read_until(&mut self, is_shown: impl Fn(&str) -> bool) {
        let mut bytes = vec![0; 64 * 1024];
        while !is_shown(&self.text()) {
            let count = self.pty.read(&mut bytes).await.expect("a terminal that shows something");
            self.seen.process(&bytes[..count]);
        }
    }

    pub(crate) fn text(&self) -> String {
        format!("\n{}", self.screen().contents())
    }

    pub(crate) fn screen(&self) -> &vt100::Screen {
        self.seen.screen()
    }
}
