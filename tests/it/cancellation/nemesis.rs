//! What becomes of the commands on their way to the store, and every case of it there is to try.

/// What becomes of one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is answered after one round trip.
    Answered,
    /// It takes effect, and is never answered.
    Silent,
    /// It takes effect, and all that comes back is an error, late.
    Failed,
    /// It takes effect, and the answer takes longer than a lease.
    Late,
    /// It takes effect and is answered, but when the lease it asked for would be over.
    Slow,
    /// It lies on the way until the trouble is over, then takes effect in its turn.
    Frozen,
    /// It never arrives, and is never answered.
    Away,
    /// It never arrives, and all that comes back is an error, late.
    Lost,
    /// It is not even sent, and the error reports it at once.
    NotSent,
}

impl Fate {
    pub(super) fn arrives(self) -> bool {
        !matches!(self, Self::Away | Self::Lost | Self::NotSent)
    }

    /// Whether the caller learns of it in the end, if only an error.
    pub(super) fn is_told(self) -> bool {
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
    /// For good.
    Ever,
}

/// What becomes of all commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nemesis {
    /// Everything is answered.
    Calm,
    /// The command number `from`, counted from 1, is the first to meet `fate`.
    Trouble { from: usize, fate: Fate, until: Until },
}

impl Nemesis {
    /// Every trouble for a future that sends this many commands.
    pub(super) fn troubles(commands: usize) -> impl Iterator<Item = Self> {
        use {Fate::*, Until::*};
        // The two that are missing differ from `Lost` only in how late the error is reported.
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

    /// The number of the first command that meets trouble.
    pub(super) fn from(self) -> usize {
        match self {
            Self::Calm => 0,
            Self::Trouble { from, .. } => from,
        }
    }

    /// What becomes of the command with this number.
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

    /// Whether it lasts for good.
    pub(super) fn is_lasting(self) -> bool {
        matches!(self, Self::Trouble { until: Until::Ever, .. })
    }
}
