//! A connection whose server has not let the client in: what it may send meanwhile is bounded. The client
//! would keep as much as comes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// All replies to a login: a server lists its modules.
const LONGEST_LOGIN: usize = 1 << 20;

pub(super) struct Unproven<S> {
    stream: S,
    read: usize,
    is_in: Arc<AtomicBool>,
}

impl<S> Unproven<S> {
    /// Also returns what to set once the login has ended.
    pub(super) fn new(stream: S) -> (Self, Arc<AtomicBool>) {
        let is_in = Arc::<AtomicBool>::default();
        (Self { stream, read: 0, is_in: is_in.clone() }, is_in)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Unproven<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if !self.is_in.load(Ordering::Relaxed) {
            self.read += buf.filled().len() - before;
            if self.read > LONGEST_LOGIN {
                let sentence = "the server sends more in its login than Redis does";
                return Poll::Ready(Err(io::Error::other(sentence)));
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Unproven<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
