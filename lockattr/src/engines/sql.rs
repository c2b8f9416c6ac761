//! What the stores in databases share.

mod max_sessions;
mod requests;
pub(super) mod sweep;
mod unanswered;

pub(super) use max_sessions::{check_max_sessions, read_max_sessions};
pub(super) use requests::{Execute, Request, Requests, Statement};
pub(super) use unanswered::{OfRuntime, Unanswered};
