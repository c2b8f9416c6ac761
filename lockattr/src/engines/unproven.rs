//! A connection whose server has not proved itself: until the login has ended, what it sends is checked
//! before the client reads it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{self, AsyncRead, AsyncWrite, ReadBuf};

/// All replies of a server to a login: some dozens of settings, or its modules.
pub(super) const LONGEST_LOGIN: usize = 1 << 20;

/// What a server may send in a login.
pub(super) trait CheckLogin: Unpin {
    /// Whether the login ends in these bytes, or ended before them; an error if it may not send them.
    fn read(&mut self, bytes: &[u8]) -> Result<bool, &'static str>;
}

pub(super) struct Unproven<S, C> {
    pub(super) stream: S,
    /// `None` once the login has ended.
    check: Option<C>,
}

impl<S, C: CheckLogin> Unproven<S, C> {
    pub(super) fn new(stream: S, check: C) -> Self {
        Self { stream, check: Some(check) }
    }
}

impl<S: AsyncRead + Unpin, C: CheckLogin> AsyncRead for Unproven<S, C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if let Some(check) = &mut self.check
            && check.read(&buf.filled()[before..]).map_err(io::Error::other)?
        {
            self.check = None;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin, C: CheckLogin> AsyncWrite for Unproven<S, C> {
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
