//! Who is inside at the same time.

use crate::sync::{Mutex, PoisonError};

/// Those who are inside something now: one alone, or some together.
pub(crate) struct Inside(Mutex<Now>);

#[derive(Default)]
struct Now {
    alone: u32,
    together: u32,
    most_together: u32,
}

impl Inside {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Now::default()))
    }

    /// No other process may be inside until `what` has run.
    pub(crate) fn alone(&self, what: impl FnOnce()) {
        self.change(|now| now.alone += 1);
        what();
        self.change(|now| now.alone -= 1);
    }

    /// Others who come like this may be inside as well.
    pub(crate) fn together(&self, what: impl FnOnce()) {
        self.change(|now| now.together += 1);
        what();
        self.change(|now| now.together -= 1);
    }

    /// How many there were at most, together.
    pub(crate) fn most_together(&self) -> u32 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).most_together
    }

    fn change(&self, change: impl FnOnce(&mut Now)) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut now);
        now.most_together = now.most_together.max(now.together);
        assert!(now.alone == 0 || now.alone + now.together == 1, "two owners");
    }
}
