//! The bars that figures are compared with.

use std::fmt;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Bar {
    AtLeast(f64),
    AtMost(f64),
}

impl Bar {
    pub(super) fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bar) => value >= bar,
            Self::AtMost(bar) => value <= bar,
        }
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(bar) => write!(f, "≥ {bar}"),
            Self::AtMost(bar) => write!(f, "≤ {bar}"),
        }
    }
}
