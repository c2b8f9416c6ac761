//! One held lock: the guard that owns it, the lease handle, the call chain that may enter it again, and where it goes when its
//! holder releases it.

pub(crate) mod chain;
pub(crate) mod core;
pub(crate) mod enter;
pub(crate) mod gate;
pub(crate) mod guard;
pub(crate) mod last_known;
pub(crate) mod lease;
pub(crate) mod permits;
pub(crate) mod scope;
pub(crate) mod stage;
pub(crate) mod thread_kind;
pub(crate) mod yield_to_others;
