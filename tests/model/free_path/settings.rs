//! The circumstances under which the protocol is tried.

use super::fault::{ALL, Fault};
use super::mistake::Mistake;
use super::setting::{Setting, Wants};
use crate::claims::Mode;

/// An exclusive claim for the first key. The caller of `X` may give up, that of `W` does not.
pub(crate) const X: Wants = Wants { mode: Mode::Exclusive, keys: &[0], gives_up: true, keeps: 0 };
pub(crate) const W: Wants = Wants { gives_up: false, ..X };
/// A claim whose lock stays taken for two ticks after its release.
pub(crate) const KEEPS: Wants = Wants { keeps: 2, ..W };
/// The same, shared.
pub(crate) const KEEPS_SHARED: Wants = Wants { keeps: 2, ..R };
/// An exclusive claim for the second key, and for both.
pub(crate) const SECOND: Wants = Wants { keys: &[1], ..W };
pub(crate) const BOTH: Wants = Wants { keys: &[0, 1], ..W };
/// A reader of the first key.
pub(crate) const R: Wants = Wants { mode: Mode::Shared, ..W };
/// One of two permits.
pub(crate) const P: Wants = Wants { mode: Mode::Permits(2), ..W };

/// The defaults, which tests override.
pub(crate) const PLAIN: Setting = Setting {
    claims: &[X, X, X],
    process: [0, 1, 2],
    faults: 1,
    kinds: ALL,
    ttl: 2,
    life: 3,
    kept: 3,
    recheck: 1,
    passed_over: 1,
    renewals: 0,
    extended: 0,
    hand_offs: 0,
    quiet: false,
    slots: false,
    reads: false,
    replica: false,
    lag: 0,
    waits_for_replica: false,
    in_order: true,
    mistake: None,
    may_leave: false,
    checks_absence: true,
};

/// Two claims, and a replica that lags and takes over. What it has missed is left to expire.
pub(crate) const LAGS: Setting =
    Setting { claims: &[W, W], kinds: &[Fault::Failover], replica: true, may_leave: true, ..PLAIN };

/// The replica takes the place of the server, in both ways that processes notice.
pub(crate) const FAILS: &[Fault] = &[Fault::Failover, Fault::RoleChange];

/// A setting with a mistake. The search looks for the harm to claims, not for the violated
/// invariant.
pub(crate) const fn with(mistake: Mistake) -> Setting {
    Setting { mistake: Some(mistake), checks_absence: false, ..PLAIN }
}
