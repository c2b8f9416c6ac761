//! `release = background`: the call returns once the release is sent, and not before.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;

use lockattr::{Error, LockManager, distributed_lock};
use lockattr_tests::{HUNG, RedisServer, assert_nothing_left};
use tokio::time::Instant;

#[distributed_lock(key = "job", manager = manager, ttl = "1h", release = background)]
async fn job(manager: &LockManager) -> Result<(), Error> {
    tokio::task::yield_now().await;
    Ok(())
}

/// Asks the server over a separate connection, without any runtime.
fn is_locked(server: &mut TcpStream) -> bool {
    server.write_all(b"EXISTS lock:job\r\n").unwrap();
    let mut answer = [0; 4];
    server.read_exact(&mut answer).unwrap();
    &answer == b":1\r\n"
}

/// When the call returns, this thread begins to compute, and no other task of its runtime can run.
#[tokio::test]
async fn a_release_in_the_background_is_sent_when_the_call_returns() {
    let server = RedisServer::start().await;
    let manager = LockManager::connect(&server.url()).await.unwrap();
    let mut beside = TcpStream::connect(server.addr()).unwrap();
    for call in 0..20 {
        job(&manager).await.unwrap();
        let returned = Instant::now();
        while is_locked(&mut beside) {
            assert!(returned.elapsed() < HUNG, "call {call}: not sent while its caller computes");
            thread::yield_now();
        }
    }
    assert_nothing_left(&server).await;
}
