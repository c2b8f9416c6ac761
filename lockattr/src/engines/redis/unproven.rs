//! What a server may send before it has let the client in. The client would keep as much as comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::engines::unproven::{CheckLogin, LONGEST_LOGIN, Unproven};

pub(super) struct LoginCheck {
    read: usize,
    is_in: Arc<AtomicBool>,
}

/// Also returns what to set once the login has ended.
pub(super) fn unproven<S>(stream: S) -> (Unproven<S, LoginCheck>, Arc<AtomicBool>) {
    let is_in = Arc::<AtomicBool>::default();
    (Unproven::new(stream, LoginCheck { read: 0, is_in: is_in.clone() }), is_in)
}

impl CheckLogin for LoginCheck {
    fn read(&mut self, bytes: &[u8]) -> Result<bool, &'static str> {
        if self.is_in.load(Ordering::Relaxed) {
            return Ok(true);
        }
        self.read += bytes.len();
        if self.read > LONGEST_LOGIN {
            return Err("the server sends more in its login than Redis does");
        }
        Ok(false)
    }
}
