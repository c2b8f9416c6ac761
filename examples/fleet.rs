//! Starts this program again, in several processes at a time: a fleet on one machine.

use std::error::Error;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::task::JoinSet;

pub(crate) type Anything = Box<dyn Error + Send + Sync>;

/// Whether the locks exist only in this process, so that the nodes have to be tasks.
pub(crate) fn is_memory(url: &str) -> bool {
    url.starts_with("memory:")
}

/// Runs this program once for each node, `PROGRAM NODE ARGUMENTS…`, all at once. Prints their
/// output as it comes, and returns it.
pub(crate) async fn run(nodes: &[&str], arguments: &[String]) -> Result<Vec<String>, Anything> {
    let mut fleet = JoinSet::new();
    for node in nodes {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(node)
            .args(arguments)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let node = (*node).to_owned();
        fleet.spawn(async move {
            let mut lines = BufReader::new(child.stdout.take().ok_or("no pipe")?).lines();
            let mut said = Vec::new();
            while let Some(line) = lines.next_line().await? {
                println!("{line}");
                said.push(line);
            }
            let status = child.wait().await?;
            if status.success() { Ok(said) } else { Err(format!("{node} ended: {status}")) }
                .map_err(Anything::from)
        });
    }
    let mut said = Vec::new();
    while let Some(node) = fleet.join_next().await {
        said.extend(node??);
    }
    Ok(said)
}
