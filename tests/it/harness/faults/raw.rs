//! A client that sends exactly the text that it is given, in one piece, and waits for the given answer.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{LIMIT, QUIET};

pub(super) struct Raw(TcpStream);

impl Raw {
    pub(super) async fn connect(addr: String) -> Self {
        Self(TcpStream::connect(addr).await.unwrap())
    }

    pub(super) async fn says(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    pub(super) async fn hears(&mut self, expected: &str) {
        let mut heard = vec![0; expected.len()];
        let reading = timeout(LIMIT, self.0.read_exact(&mut heard)).await;
        let heard = String::from_utf8_lossy(&heard);
        assert!(matches!(reading, Ok(Ok(_))), "{reading:?} after {heard:?}, not {expected:?}");
        assert_eq!(heard, expected);
    }

    pub(super) async fn hears_until(&mut self, end: &str) {
        let reading = async {
            let mut heard = Vec::new();
            while !heard.ends_with(end.as_bytes()) {
                heard.push(self.0.read_u8().await.unwrap());
            }
        };
        timeout(LIMIT, reading).await.expect("a hang");
    }

    pub(super) async fn hears_nothing(&mut self) {
        let reading = timeout(QUIET, self.0.read_u8()).await;
        assert!(reading.is_err(), "{reading:?}");
    }

    pub(super) async fn is_cut(&mut self) {
        let reading = timeout(LIMIT, self.0.read_u8()).await.expect("an end");
        assert!(reading.is_err(), "{reading:?}");
    }
}
