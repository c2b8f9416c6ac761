//! A proxy between the client and the server: one that asks for `CLIENT_FOUND_ROWS`, as `ProxySQL`
//! does, and one that shares server connections between its clients.

use lockattr::{Error, LockManager, LockOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::{Database, HOUR};

/// `CLIENT_FOUND_ROWS`, in the first byte of the capabilities.
const FOUND_ROWS: u8 = 2;

/// Starts a proxy that adds the capability to the login of each client. Returns its address.
async fn counts_found_rows(server: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let Ok(mut server) = TcpStream::connect(&server).await else { continue };
            tokio::spawn(async move {
                let login = async {
                    // The server's greeting is one packet: three bytes of length, a number.
                    let mut head = [0; 4];
                    server.read_exact(&mut head).await?;
                    client.write_all(&head).await?;
                    let length = u32::from_le_bytes([head[0], head[1], head[2], 0]);
                    copy(&mut (&mut server).take(length.into()), &mut client).await?;
                    // The client's reply begins with its capabilities.
                    let mut reply = [0; 5];
                    client.read_exact(&mut reply).await?;
                    reply[4] |= FOUND_ROWS;
                    server.write_all(&reply).await?;
                    copy_bidirectional(&mut client, &mut server).await
                };
                let _closed: std::io::Result<_> = login.await;
            });
        }
    });
    addr
}

async fn over_proxy(database: &Database) -> String {
    let server = database.server.addr();
    database.url("").replace(&server, &counts_found_rows(server.clone()).await)
}

/// Each statement then reports the rows that it found, and not those that it changed.
///
/// Red without: the comparison of tokens in `acquire.sql` (a row that was already there counted as
/// inserted).
#[tokio::test]
async fn a_client_that_counts_found_rows_shares_no_lock() {
    let database = Database::new().await;
    let url = over_proxy(&database).await;
    let (here, there) =
        (LockManager::connect(&url).await.unwrap(), LockManager::connect(&url).await.unwrap());
    let first = here.acquire("a", LockOptions::new()).await.unwrap();
    let second = there.try_acquire("a", LockOptions::new()).await.unwrap();
    assert!(second.is_none(), "two holders");
    assert_eq!(database.number("SELECT COUNT(*) FROM lockattr_v2_locks WHERE mode = 'x'").await, 1);
    let token = first.fencing_token();
    first.ensure_held().unwrap();
    first.release().await.unwrap();
    let next = there.acquire("a", LockOptions::new()).await.unwrap();
    assert!(next.fencing_token() > token);
    next.release().await.unwrap();
    database.holds_nothing().await;
}

/// The same with waiters, renewals, shared locks and permits.
#[tokio::test]
async fn a_client_that_counts_found_rows_waits_renews_and_releases() {
    let database = Database::new().await;
    let url = over_proxy(&database).await;
    let mut tasks = JoinSet::new();
    for nth in 0..4_u32 {
        let manager = LockManager::connect(&url).await.unwrap();
        tasks.spawn(async move {
            for round in 0..6 {
                let options = LockOptions::new();
                let guard = match (nth + round) % 3 {
                    0 => manager.acquire("a", options).await.unwrap(),
                    1 => manager.acquire("p", options.permits(2)).await.unwrap(),
                    _ => manager.acquire_all(["a", "b"], options).await.unwrap(),
                };
                guard.extend(HOUR).await.unwrap();
                guard.release().await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    database.holds_nothing().await;
}

/// Starts a proxy that greets its clients as another connection than the server's, as a proxy does
/// that owns the connections to the server. Returns its address.
async fn greets_as_another(server: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let Ok(mut server) = TcpStream::connect(&server).await else { continue };
            tokio::spawn(async move {
                let greeting = async {
                    let mut head = [0; 4];
                    server.read_exact(&mut head).await?;
                    let length = usize::from(head[0]) | usize::from(head[1]) << 8;
                    let mut greeting = vec![0; length];
                    server.read_exact(&mut greeting).await?;
                    // The protocol's number, the server's version as text, the connection's id.
                    let version = greeting.iter().position(|&byte| byte == 0).unwrap_or(0);
                    greeting[version + 3] ^= 0x55;
                    client.write_all(&head).await?;
                    client.write_all(&greeting).await?;
                    copy_bidirectional(&mut client, &mut server).await
                };
                let _closed: std::io::Result<_> = greeting.await;
            });
        }
    });
    addr
}

/// What such a proxy does to a lock of the session, and to a query that another connection ends,
/// cannot be known.
///
/// Red without: `probe` in `connect.rs`.
#[tokio::test]
async fn a_proxy_that_owns_the_connections_is_refused_with_advice() {
    let database = Database::new().await;
    let server = database.server.addr();
    let proxy = greets_as_another(server.clone()).await;
    for form in ["lease", "session"] {
        let url = database.url(&format!("lock={form}")).replace(&server, &proxy);
        let error = LockManager::connect(&url).await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::Store { .. }) && text.contains("a proxy"), "{text}");
        assert!(text.contains("connect to the server itself"), "{text}");
        assert!(!text.contains("s3cret"), "{text}");
    }
}
