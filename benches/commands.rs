//! How many commands clients have sent to a server, and how long it has computed.
//!
//! The server's own count, `INFO commandstats`, has each command that a script calls in it as well
//! (`GET`, `DEL`, `PUBLISH` of ours). So only those are added up here that a script cannot call, or
//! that no script of anybody compared here does call. `SET` is sent by the peers themselves but
//! called by our scripts, so it depends on who is measured. The bench's own look into the server
//! (`INFO`) is not counted.

use std::time::Duration;

use lockattr_tests::Cli;

/// Never inside a script: the server refuses most of them there.
const SENT: [&str; 18] = [
    "eval",
    "evalsha",
    "evalsha_ro",
    "fcall",
    "ping",
    "subscribe",
    "unsubscribe",
    "ssubscribe",
    "sunsubscribe",
    "psubscribe",
    "punsubscribe",
    "script|load",
    "script|exists",
    "multi",
    "exec",
    "watch",
    "hello",
    "auth",
];

/// Whether the one that is measured sends `SET` by itself, or has it in a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Set {
    Sent,
    InScripts,
}

/// All that clients have sent so far.
pub(crate) async fn sent(cli: &Cli, set: Set) -> u64 {
    let stats = cli.commandstats().await;
    let calls = |name: &str| stats.get(name).copied().unwrap_or_default();
    let direct: u64 = SENT.iter().map(|name| calls(name)).sum();
    direct + if set == Set::Sent { calls("set") } else { 0 }
}

/// How long the server's process has computed so far, in and out of the kernel.
pub(crate) async fn server_cpu(cli: &Cli) -> Duration {
    let mut total = Duration::ZERO;
    for field in ["used_cpu_user", "used_cpu_sys"] {
        let seconds = cli.info(field).await.trim().parse().expect("seconds with a point");
        total += Duration::from_secs_f64(seconds);
    }
    total
}
