//! Counts the tasks that are inside at the same time, and fails if they exclude each other.

use crate::sync::Mutex;

/// The tasks that are inside something: one alone, or several together.
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

    /// Runs `what`, while no other task may be inside.
    pub(crate) fn alone(&self, what: impl FnOnce()) {
        self.change(|now| now.alone += 1);
        what();
        self.change(|now| now.alone -= 1);
    }

    /// Runs `what`, while other tasks may be inside that call this method.
    pub(crate) fn together(&self, what: impl FnOnce()) {
        self.change(|now| now.together += 1);
        what();
        self.change(|now| now.together -= 1);
    }

    /// The greatest number of tasks that were inside together.
    pub(crate) fn most_together(&self) -> u32 {
        self.0.lock().most_together
    }

    fn change(&self, change: impl FnOnce(&mut Now)) {
        let mut now = self.0.lock();
        change(&mut now);
        now.most_together = now.most_together.max(now.together);
        assert!(now.alone == 0 || now.alone + now.together == 1, "two owners");
    }
}
