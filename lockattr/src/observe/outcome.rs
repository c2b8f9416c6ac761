//! How a call or a hold ended: the values of the label and field `outcome`, and of `error.type`.

use crate::{Error, LostReason};

/// How a call that requested a lock ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AcquireEnd {
    Acquired,
    Reentered,
    Contended,
    Done,
    Unavailable,
    Cancelled,
    ShutDown,
    Lost,
    NotReentrant,
    Deadlock,
    Invalid,
}

impl AcquireEnd {
    /// The number of variants.
    #[cfg(feature = "metrics")]
    pub(super) const COUNT: usize = Self::Invalid as usize + 1;

    pub(super) fn of(error: &Error) -> Self {
        match error {
            Error::Contended { .. } => Self::Contended,
            Error::Done { .. } => Self::Done,
            Error::Store { .. } => Self::Unavailable,
            Error::Lost { .. } => Self::Lost,
            Error::ShutDown { .. } => Self::ShutDown,
            Error::Deadlock { .. } => Self::Deadlock,
            Error::Reentered { .. } => Self::NotReentrant,
            _ => Self::Invalid,
        }
    }

    /// The stable name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Acquired => "acquired",
            Self::Reentered => "reentered",
            Self::Contended => "contended",
            Self::Done => "done",
            Self::Unavailable => "unavailable",
            Self::Cancelled => "cancelled",
            Self::ShutDown => "shut_down",
            Self::Lost => "lost",
            Self::NotReentrant => "not_reentrant",
            Self::Deadlock => "deadlock",
            Self::Invalid => "invalid",
        }
    }

    /// The class of the error that the caller gets, if it gets one. A caller that gave up gets none.
    pub(super) fn error_type(self) -> Option<&'static str> {
        match self {
            Self::Acquired | Self::Reentered | Self::Cancelled => None,
            // The part that failed, and not how the call ended.
            Self::Unavailable => Some("store"),
            refused => Some(refused.name()),
        }
    }
}

/// The stable name of the reason for the end of a hold.
pub(super) fn named(reason: LostReason) -> &'static str {
    match reason {
        LostReason::Expired => "expired",
        LostReason::Taken => "taken",
        LostReason::MaxHold => "max_hold",
        LostReason::ShutDown => "shut_down",
        LostReason::Released => "released",
        LostReason::Forked => "forked",
        LostReason::Silent => "silent",
    }
}

/// The class of the error with which a hold ended, if it was not released.
pub(super) fn error_type(reason: LostReason) -> Option<&'static str> {
    match reason {
        LostReason::Released => None,
        LostReason::Expired => Some("lost.expired"),
        LostReason::Taken => Some("lost.taken"),
        LostReason::MaxHold => Some("lost.max_hold"),
        LostReason::ShutDown => Some("lost.shut_down"),
        LostReason::Forked => Some("lost.forked"),
        LostReason::Silent => Some("lost.silent"),
    }
}
