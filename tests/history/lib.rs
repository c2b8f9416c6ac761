//! Records what processes did with locks, and checks whether a correct lock allows that history.
//!
//! Each process records its calls and their outcomes ([`Recorder`]), with the time of a clock that all processes
//! share. [`check`] judges that history, and a [`Resource`] records damage to what the locks guard. Nothing here depends
//! on lockattr, so other locks can be judged too.

mod chain;
mod check;
mod event;
mod fences;
mod hold;
mod overlap;
mod read;
mod recorder;
mod resource;
mod seed;
mod terms;
mod violation;

pub use check::{Judged, check};
pub use event::{Event, Mode, Op, Step};
pub use read::read;
pub use recorder::{Call, Recorder, monotonic};
pub use resource::{Damage, Resource, Resources};
pub use seed::seed;
pub use terms::{JudgedTerms, TermEvent, TermKind, TermStep, TermViolation, check_terms};
pub use violation::{Kind, Violation};
