//! Nobody records what is locked: that takes the feature `testing`.

use std::fmt::Debug;

use crate::options::Terms;
use crate::{Error, LockGuard, LostReason};

/// Who records a manager's acquisitions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Audience {}

/// Where one of them is recorded.
#[derive(Debug, Default)]
pub(crate) struct Seat {}

impl Audience {
    pub(crate) fn seat<'a>(self, _: &Terms, _keys: impl Iterator<Item = &'a str>) -> Seat {
        Seat {}
    }
}

// By reference, because the one that records does so too.
#[allow(clippy::unused_self, clippy::trivially_copy_pass_by_ref)]
impl Seat {
    pub(crate) fn nested(self) -> Self {
        self
    }

    pub(crate) fn waits(&self) {}

    pub(crate) fn acquired(&mut self, _: &LockGuard) {}

    pub(crate) fn over(&mut self, _: &Result<LockGuard, Error>) {}

    pub(crate) fn lost(&mut self, _: LostReason) {}
}
