//! What the stores in databases share.

mod requests;
mod unanswered;

pub(super) use requests::{Execute, Request, Requests, Statement};
pub(super) use unanswered::{OfRuntime, Unanswered};
