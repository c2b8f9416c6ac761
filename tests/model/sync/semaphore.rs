//! Tokio's semaphore, as documented: waiters get permits in the order of their arrival, as permits
//! become free.
//!
//! A waiter that leaves returns the permits it has got so far.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::{Mutex, MutexGuard};

#[derive(Debug)]
pub(crate) struct Semaphore(Mutex<State>);

#[derive(Debug)]
struct State {
    /// 0 while any task waits.
    free: usize,
    waiting: VecDeque<Waiter>,
    last_id: u64,
}

#[derive(Debug)]
struct Waiter {
    id: u64,
    lacks: usize,
    waker: Waker,
}

/// The error of a closed semaphore. No task closes one here.
#[derive(Debug)]
pub(crate) struct Closed;

/// The error if too few permits are free.
#[derive(Debug)]
pub(crate) struct NotNow;

impl Semaphore {
    pub(crate) fn new(permits: usize) -> Self {
        Self(Mutex::new(State { free: permits, waiting: VecDeque::new(), last_id: 0 }))
    }

    pub(crate) fn acquire_many(&self, permits: u32) -> Acquire<'_> {
        Acquire { semaphore: self, permits: permits as usize, waits_as: None, done: false }
    }

    pub(crate) fn try_acquire_many(&self, permits: u32) -> Result<Permit<'_>, NotNow> {
        let (mut state, permits) = (self.state(), permits as usize);
        state.free = state.free.checked_sub(permits).ok_or(NotNow)?;
        Ok(Permit { semaphore: self, permits })
    }

    pub(crate) fn add_permits(&self, permits: usize) {
        let woken = self.state().add(permits);
        woken.into_iter().for_each(Waker::wake);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl State {
    fn add(&mut self, permits: usize) -> Vec<Waker> {
        self.free += permits;
        let mut woken = Vec::new();
        while let Some(first) = self.waiting.front_mut() {
            let gets = first.lacks.min(self.free);
            (first.lacks, self.free) = (first.lacks - gets, self.free - gets);
            if first.lacks > 0 {
                break;
            }
            woken.extend(self.waiting.pop_front().map(|first| first.waker));
        }
        woken
    }
}

/// A wait for permits.
pub(crate) struct Acquire<'a> {
    semaphore: &'a Semaphore,
    permits: usize,
    waits_as: Option<u64>,
    done: bool,
}

impl<'a> Future for Acquire<'a> {
    type Output = Result<Permit<'a>, Closed>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (semaphore, permits) = (self.semaphore, self.permits);
        let mut state = semaphore.state();
        match self.waits_as {
            Some(me) => {
                if let Some(waiter) = state.waiting.iter_mut().find(|waiter| waiter.id == me) {
                    waiter.waker = cx.waker().clone();
                    return Poll::Pending;
                }
            }
            None if state.free >= permits => state.free -= permits,
            None => {
                state.last_id += 1;
                let (id, lacks) = (state.last_id, permits - state.free);
                state.free = 0;
                state.waiting.push_back(Waiter { id, lacks, waker: cx.waker().clone() });
                self.waits_as = Some(id);
                return Poll::Pending;
            }
        }
        self.done = true;
        Poll::Ready(Ok(Permit { semaphore, permits }))
    }
}

impl Drop for Acquire<'_> {
    fn drop(&mut self) {
        let (Some(me), false) = (self.waits_as, self.done) else { return };
        let woken = {
            let mut state = self.semaphore.state();
            let lacks = match state.waiting.iter().position(|waiter| waiter.id == me) {
                Some(at) => state.waiting.remove(at).map_or(0, |waiter| waiter.lacks),
                None => 0,
            };
            state.add(self.permits - lacks)
        };
        woken.into_iter().for_each(Waker::wake);
    }
}

/// Permits, returned on drop.
#[derive(Debug)]
pub(crate) struct Permit<'a> {
    semaphore: &'a Semaphore,
    permits: usize,
}

impl Permit<'_> {
    pub(crate) fn forget(mut self) {
        self.permits = 0;
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.permits > 0 {
            self.semaphore.add_permits(self.permits);
        }
    }
}
