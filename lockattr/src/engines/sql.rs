//! What the stores in databases share.

mod requests;

pub(super) use requests::{Execute, Request, Requests, Statement};
