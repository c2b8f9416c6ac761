//! Records what processes did with locks, and checks whether a correct lock allows that history.
//!
//! Each process records its calls and their outcomes with a [`Recorder`], with the time of a clock
//! that all processes share. [`check`] checks the history, and [`audit`] the resource that the
//! locks guarded. Nothing here depends on lockattr: any lock can be checked.

mod chain;
mod check;
mod event;
mod fences;
mod hold;
mod overlap;
mod read;
mod recorder;
mod resource;
mod violation;

pub use check::{Judged, check};
pub use event::{Event, Mode, Op, Step};
pub use read::read;
pub use recorder::{Call, Recorder, monotonic};
pub use resource::{Held, Written, Wrong, audit};
pub use violation::{Kind, Violation};
