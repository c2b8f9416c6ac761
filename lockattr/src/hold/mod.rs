//! One held lock: its guard, its lease handle, the call chain that may re-enter it, and its
//! destination after its release.

pub(crate) mod chain;
pub(crate) mod core;
pub(crate) mod enter;
pub(crate) mod gate;
pub(crate) mod guard;
pub(crate) mod last_known;
pub(crate) mod lease;
pub(crate) mod permits;
pub(crate) mod scope;
pub(crate) mod term;
pub(crate) mod thread_kind;
pub(crate) mod yield_to_others;
