//! What a server may send before it has let the client in: no more than a login has.

use lockattr::LockManager;
use lockattr_tests::in_time;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// More than the client and the system keep of what it is sent.
const MUCH: usize = 64 << 20;

/// A server whose first reply begins so and goes on with `more`, again and again. Returns its port, and
/// how many bytes its first client has taken.
async fn endless(begin: &'static str, more: &'static str) -> (u16, JoinHandle<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let (mut taken, more) = (0, more.repeat(4096));
        client.write_all(begin.as_bytes()).await.unwrap();
        while taken < MUCH && client.write_all(more.as_bytes()).await.is_ok() {
            taken += more.len();
        }
        taken
    };
    (port, tokio::spawn(serve))
}

/// Red without: `Unproven`.
#[tokio::test]
async fn a_reply_to_a_login_is_bounded_whatever_its_length_says() {
    for (begin, more) in [("$2147483647\r\n", "xxxx"), ("*2147483647\r\n", ":1\r\n"), ("+", "xxxx")]
    {
        let (port, taken) = endless(begin, more).await;
        let url = format!("redis://127.0.0.1:{port}/?connect_timeout=30s");
        let refused = in_time(LockManager::connect(url)).await.expect_err("no server at all");
        assert!(refused.to_string().contains("more in its login"), "{begin:?}: {refused}");
        assert!(in_time(taken).await.unwrap() < MUCH, "{begin:?}");
    }
}
