//! The fates of commands on their way to the store, and every combination of them to test.

/// The fate of one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It gets its reply after one round trip.
    Answered,
    /// It takes effect and never gets a reply.
    Silent,
    /// It takes effect, and the caller gets only an error, late.
    Failed,
    /// It takes effect, and the reply takes longer than a lease.
    Late,
    /// It takes effect and gets a reply, but only when the lease it asked for would be over.
    Slow,
    /// It is stuck on the way until the trouble is over, then takes effect in order.
    Frozen,
    /// It never arrives and never gets a reply.
    Away,
    /// It never arrives, and the caller gets only an error, late.
    Lost,
    /// It is not sent, and the error reports that at once.
    NotSent,
}

impl Fate {
    pub(super) fn arrives(self) -> bool {
        !matches!(self, Self::Away | Self::Lost | Self::NotSent)
    }

    /// Returns whether the caller eventually gets a result, if only an error.
    pub(super) fn is_notified(self) -> bool {
        !matches!(self, Self::Silent | Self::Away)
    }
}

/// How long a trouble lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// For one command.
    Once,
    /// Until the future under test is dropped.
    Dropped,
    /// To the end of the test.
    Ever,
}

/// The fate of all commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nemesis {
    /// Every command gets its reply.
    Calm,
    /// The command number `from`, counted from 1, is the first to meet `fate`.
    Trouble { from: usize, fate: Fate, until: Until },
}

impl Nemesis {
    /// Returns every trouble for a future that sends this many commands.
    pub(super) fn troubles(commands: usize) -> impl Iterator<Item = Self> {
        use {Fate::*, Until::*};
        // The two missing combinations differ from `Lost` only in how late the error is reported.
        let troubles = [
            (Silent, Once),
            (Silent, Dropped),
            (Silent, Ever),
            (Failed, Once),
            (Failed, Dropped),
            (Away, Once),
            (Away, Dropped),
            (Away, Ever),
            (Lost, Once),
            (Lost, Dropped),
            (Lost, Ever),
            (NotSent, Once),
            (Late, Once),
            (Frozen, Dropped),
        ];
        let trouble = move |from| {
            troubles.into_iter().map(move |(fate, until)| Self::Trouble { from, fate, until })
        };
        (1..=commands).flat_map(trouble)
    }

    /// Returns the number of the first command that meets trouble.
    pub(super) fn from(self) -> usize {
        match self {
            Self::Calm => 0,
            Self::Trouble { from, .. } => from,
        }
    }

    /// Returns the fate of the command with this number.
    pub(super) fn fate(self, number: usize, dropped: bool) -> Fate {
        match self {
            Self::Trouble { from, fate, until } if number >= from => match until {
                Until::Once if number > from => Fate::Answered,
                Until::Dropped if dropped => Fate::Answered,
                _ => fate,
            },
            _ => Fate::Answered,
        }
    }

    /// Returns whether the trouble lasts to the end of the test.
    pub(super) fn is_lasting(self) -> bool {
        matches!(self, Self::Trouble { until: Until::Ever, .. })
    }
}
