//! The signals that this process passes on.

use std::io;

use nix::sys::signal::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

const PASSED_ON: [Signal; 6] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// The signals that this process received, in order.
#[derive(Debug)]
pub(crate) struct Signals {
    received: mpsc::UnboundedReceiver<Signal>,
}

impl Signals {
    /// From here on, these signals do not end this process. Signals that were ignored at its start
    /// stay ignored, for the command as well, as `nohup` expects.
    pub(crate) fn new() -> io::Result<Self> {
        Self::of(&PASSED_ON)
    }

    pub(super) fn of(selected: &[Signal]) -> io::Result<Self> {
        let (sender, received) = mpsc::unbounded_channel();
        let ignored = ignored();
        for &selected in selected.iter().filter(|selected| !is_in(ignored, **selected)) {
            let mut stream = signal(SignalKind::from_raw(selected as i32))?;
            let sender = sender.clone();
            tokio::spawn(async move {
                while stream.recv().await.is_some() && sender.send(selected).is_ok() {}
            });
        }
        Ok(Self { received })
    }

    pub(crate) async fn next(&mut self) -> Signal {
        match self.received.recv().await {
            Some(signal) => signal,
            // All of them are ignored.
            None => std::future::pending().await,
        }
    }
}

/// The set of ignored signals, if the system reports it; empty otherwise.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or_default()
}

fn is_in(set: u64, signal: Signal) -> bool {
    set & (1 << (signal as i32 - 1)) != 0
}
