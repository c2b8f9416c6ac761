//! Inspects etcd: runs `etcdctl`, and reads the members' health and metrics pages.

use std::process::Stdio;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::time::timeout;

use crate::HUNG;

/// The environment variable that names a program other than the `etcdctl` on the `PATH`.
const PROGRAM: &str = "LOCKATTR_ETCDCTL";

/// Runs `etcdctl` with this input and returns its output, or its error.
pub(super) async fn run(addrs: &str, words: &[&str], input: &str) -> Result<String, String> {
    let program = std::env::var(PROGRAM).unwrap_or_else(|_| "etcdctl".to_owned());
    let mut command = Command::new(program);
    command.env("ETCDCTL_API", "3").args(["--endpoints", addrs]).args(words).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let failed = |error| format!("{error}; if it is missing: `apt-get install etcd-client`");
    let mut child = command.spawn().map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command that fails may not read it.
        let _unread = stdin.write_all(input.as_bytes()).await;
    }
    let output = child.wait_with_output().await.map_err(failed)?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Returns whether this member leads.
pub(super) async fn leads(addr: &str) -> bool {
    let words = ["endpoint", "status", "--command-timeout=10s"];
    let Ok(status) = run(addr, &words, "").await else { return false };
    // The fields are the address, id, version, data size, and whether it leads.
    status.split(", ").nth(4) == Some("true")
}

/// Returns whether this member serves and knows a leader.
pub(super) async fn is_healthy(addr: &str) -> bool {
    page(addr, "/health").await.is_some_and(|page| page.contains(r#""health":"true""#))
}

/// Returns one of the member's metrics.
pub(super) async fn metric(addr: &str, name: &str) -> Option<u64> {
    let page = page(addr, "/metrics").await?;
    let count = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
    page.lines().find_map(count)
}

async fn page(addr: &str, path: &str) -> Option<String> {
    let request = async {
        let mut stream = TcpStream::connect(addr).await?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await?;
        let mut page = String::new();
        stream.read_to_string(&mut page).await?;
        Ok::<_, std::io::Error>(page)
    };
    timeout(HUNG, request).await.ok()?.ok()
}
