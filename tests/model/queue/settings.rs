//! The circumstances under which the protocol is tried.

use super::setting::{ALL, Mistake, Setting, Wants};
use crate::claims::{Mode, wait};
use crate::search::explore;

/// An exclusive claim for the first key. The caller of `X` may give up, that of `W` does not.
pub(crate) const X: Wants = Wants { mode: Mode::Exclusive, keys: &[0], gives_up: true };
pub(crate) const W: Wants = Wants { gives_up: false, ..X };
/// An exclusive claim for the second key, and for both.
pub(crate) const SECOND: Wants = Wants { keys: &[1], ..W };
pub(crate) const BOTH: Wants = Wants { keys: &[0, 1], ..W };
/// A reader of the first key, of the second, of both.
pub(crate) const R: Wants = Wants { mode: Mode::Shared, ..W };
pub(crate) const READS_SECOND: Wants = Wants { keys: &[1], ..R };
pub(crate) const READS_BOTH: Wants = Wants { keys: &[0, 1], ..R };
/// One of two permits.
pub(crate) const P: Wants = Wants { mode: Mode::Permits(2), ..W };

/// The defaults, which tests override.
pub(crate) const PLAIN: Setting = Setting {
    claims: &[X, X, X],
    faults: 1,
    kinds: ALL,
    ttl: 2,
    life: 3,
    recheck: 1,
    passed_over: 1,
    in_order: true,
    monitored: false,
    each_request_serves: false,
    mistake: None,
    may_leave: false,
};

pub(crate) const fn with(mistake: Mistake) -> Setting {
    Setting { mistake: Some(mistake), ..PLAIN }
}

/// [`wait::holds`]; if more faults are allowed, only asserts that no state is wrong.
#[track_caller]
pub(crate) fn holds(setting: &Setting, states: usize, longest: u8) {
    let more = std::env::var("LOCKATTR_MODELS_FAULTS").ok();
    if let Some(more) = more.and_then(|faults| faults.parse::<u8>().ok()) {
        let setting = Setting { faults: setting.faults + more, ..*setting };
        explore(&setting).has_nothing_wrong();
        return;
    }
    wait::holds(setting, states, longest);
}
