//! Tokio's oneshot channel, as documented: send and poll are one step each.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::{Arc, Mutex};

pub(crate) fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let state = State { value: None, sent_or_gone: false, closed: false, waker: None };
    let channel = Arc::new(Mutex::new(state));
    (Sender(Some(channel.clone())), Receiver { channel, over: false })
}

struct State<T> {
    value: Option<T>,
    /// The sender has sent or is gone.
    sent_or_gone: bool,
    closed: bool,
    waker: Option<Waker>,
}

pub(crate) struct Sender<T>(Option<Arc<Mutex<State<T>>>>);

impl<T> Sender<T> {
    pub(crate) fn send(mut self, value: T) -> Result<(), T> {
        let Some(channel) = self.0.take() else { return Err(value) };
        let waker = {
            let mut state = channel.lock();
            state.sent_or_gone = true;
            if state.closed {
                return Err(value);
            }
            state.value = Some(value);
            state.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
        Ok(())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let Some(channel) = self.0.take() else { return };
        let waker = {
            // `Waiter::drop` drops its own sender while the queues are locked.
            let mut state = channel.lock_in_the_same_step();
            state.sent_or_gone = true;
            state.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }
}

pub(crate) struct Receiver<T> {
    channel: Arc<Mutex<State<T>>>,
    /// The value came or the channel is closed: dropping the receiver changes nothing for others.
    over: bool,
}

/// No value has come, and none will.
#[derive(Debug)]
pub(crate) struct Nothing;

impl<T> Future for Receiver<T> {
    type Output = Result<T, Nothing>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = {
            let mut state = self.channel.lock();
            match state.value.take() {
                Some(value) => Poll::Ready(Ok(value)),
                None if state.sent_or_gone || state.closed => Poll::Ready(Err(Nothing)),
                None => {
                    state.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        };
        self.over |= polled.is_ready();
        polled
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        // A closed channel may still hold a value, which is dropped with it.
        let value = {
            let mut state = match self.over {
                true => self.channel.lock_in_the_same_step(),
                false => self.channel.lock(),
            };
            state.closed = true;
            state.value.take()
        };
        drop(value);
    }
}
