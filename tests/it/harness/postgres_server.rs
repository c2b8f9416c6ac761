//! Tests of the harness' PostgreSQL: what it leaves on the machine.

use lockattr_tests::{Engine, PostgresServer};

/// Whether the system still has this segment of shared memory.
fn is_there(id: u32) -> bool {
    let segments = std::fs::read_to_string("/proc/sysvipc/shm").expect("Linux lists them");
    let ids = segments.lines().filter_map(|line| line.split_whitespace().nth(1));
    ids.into_iter().any(|it| it == id.to_string())
}

/// A machine has some thousand of them, and without one no server starts.
///
/// Red without: `Drop for PostgresServer`.
#[tokio::test]
async fn a_server_leaves_no_shared_memory() {
    for is_killed_before in [false, true] {
        let server = PostgresServer::start().await;
        let id = server.shared_memory().expect("it notes the segment");
        assert!(is_there(id));
        if is_killed_before {
            server.kill();
        }
        drop(server);
        assert!(!is_there(id));
    }
}
