//! A client that sends exactly the given text, in one piece, and waits for the given reply.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::QUIET;
use lockattr_tests::in_time;

pub(super) struct Raw(TcpStream);

impl Raw {
    pub(super) async fn connect(addr: String) -> Self {
        Self(TcpStream::connect(addr).await.unwrap())
    }

    pub(super) async fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    pub(super) async fn expect_reply(&mut self, expected: &str) {
        let mut received = vec![0; expected.len()];
        let reading = in_time(self.0.read_exact(&mut received)).await;
        let received = String::from_utf8_lossy(&received);
        assert!(reading.is_ok(), "{reading:?} after {received:?}, not {expected:?}");
        assert_eq!(received, expected);
    }

    pub(super) async fn expect_until(&mut self, end: &str) {
        let reading = async {
            let mut received = Vec::new();
            while !received.ends_with(end.as_bytes()) {
                received.push(self.0.read_u8().await.unwrap());
            }
        };
        in_time(reading).await;
    }

    pub(super) async fn expect_silence(&mut self) {
        let reading = timeout(QUIET, self.0.read_u8()).await;
        assert!(reading.is_err(), "{reading:?}");
    }

    pub(super) async fn expect_end(&mut self) {
        let reading = in_time(self.0.read_u8()).await;
        assert!(reading.is_err(), "{reading:?}");
    }
}
