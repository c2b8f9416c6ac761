//! The partner: answers as many calls as it allows, and rejects the others.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::client::AT_ONCE;

const THINKS: Duration = Duration::from_millis(30);

/// Runs until it is dropped.
pub(crate) struct Partner {
    address: SocketAddr,
    book: Arc<Book>,
    listens: JoinHandle<()>,
}

#[derive(Default)]
struct Book {
    calls: AtomicU32,
    now: AtomicU32,
    most: AtomicU32,
    refused: AtomicU32,
}

impl Partner {
    pub(crate) async fn open() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, book) = (listener.local_addr()?, Arc::<Book>::default());
        let kept = book.clone();
        let listens = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let book = kept.clone();
                tokio::spawn(async move { book.reply(stream).await });
            }
        });
        Ok(Self { address, book, listens })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The number of calls, the most at once, and the number that it rejected.
    pub(crate) fn seen(&self) -> (u32, u32, u32) {
        let Book { calls, most, refused, .. } = &*self.book;
        (calls.load(SeqCst), most.load(SeqCst), refused.load(SeqCst))
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        self.listens.abort();
    }
}

impl Book {
    async fn reply(&self, stream: TcpStream) -> io::Result<()> {
        let mut stream = BufReader::new(stream);
        let mut request = String::new();
        stream.read_line(&mut request).await?;
        self.calls.fetch_add(1, SeqCst);
        let at_once = self.now.fetch_add(1, SeqCst) + 1;
        self.most.fetch_max(at_once, SeqCst);
        let reply = if at_once <= AT_ONCE {
            sleep(THINKS).await;
            "yes\n"
        } else {
            self.refused.fetch_add(1, SeqCst);
            "too many\n"
        };
        // Before the answer, because its receiver may start the next call.
        self.now.fetch_sub(1, SeqCst);
        stream.write_all(reply.as_bytes()).await
    }
}
