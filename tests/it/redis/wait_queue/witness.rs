//! Checks that holders are alone.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockattr::{FencingToken, Lease};
use lockattr_tests::pause;

/// Each holder reads a number, yields to all others, and writes it back incremented, so none is
/// missing only if each was alone; their fencing tokens may only grow.
#[derive(Clone, Default)]
pub(super) struct Witness(Arc<Seen>);

#[derive(Default)]
struct Seen {
    count: AtomicU64,
    last: Mutex<Option<FencingToken>>,
}

impl Witness {
    pub(super) async fn sees(&self, holder: &Lease) {
        self.saw(holder.fencing_token());
        let count = self.0.count.load(Ordering::SeqCst);
        pause(Duration::from_millis(1)).await;
        self.0.count.store(count + 1, Ordering::SeqCst);
    }

    /// Records a holder in another process.
    pub(super) fn saw(&self, token: FencingToken) {
        let before = self.0.last.lock().unwrap().replace(token);
        assert!(before < Some(token), "{token:?} after {before:?}");
    }

    /// The number of holders, if each was alone.
    pub(super) fn count(&self) -> u64 {
        self.0.count.load(Ordering::SeqCst)
    }
}
