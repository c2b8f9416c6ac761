//! Tests that no child process outlives a test, however the test ends.

use lockattr_tests::{RedisServer, eventually, node};

fn is_alive(pid: u32) -> bool {
    // A zombie still has its process id, but no memory.
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.contains("VmSize")
}

#[tokio::test]
async fn a_dropped_server_is_gone_with_its_directory() {
    let server = RedisServer::start().await;
    let socket = server.unix_path();
    let pid = server.pid();
    assert!(socket.exists() && is_alive(pid));
    drop(server);
    assert!(!socket.parent().unwrap().exists());
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn the_children_of_a_killed_parent_are_killed() {
    // The node starts a server. The killed node cannot stop it.
    let mut parent = node!("server");
    let reply = parent.line().await;
    let (pid, socket) = reply.split_once(' ').unwrap();
    let pid = pid.parse().unwrap();
    assert!(is_alive(pid));
    parent.kill();
    eventually("the orphan is gone", async || !is_alive(pid)).await;
    let directory = std::path::Path::new(socket).parent().unwrap();
    eventually("its directory too", async || !directory.exists()).await;
}
