//! What processes did with locks and when, and whether any lock could have allowed that.
//!
//! Each process writes down what it asks and what it is answered ([`Recorder`]), with the time by a clock
//! that all of them share; [`check`] judges it, and [`audit`] what their locks guarded. Nothing here knows lockattr: whatever locks can be judged
//! by it.

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
