//! The order in which locks are shown.

use std::cmp::Ordering;

use clap::ValueEnum;

use crate::row::Row;

/// The column to sort by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    /// By name
    #[default]
    Key,
    /// By service, host and process
    Holder,
    /// Held longest first
    Age,
    /// The lease that ends next first
    Remaining,
    /// Most waiters first
    Waiting,
}

impl Sort {
    /// The next order, for a user who cycles through them.
    pub(crate) fn next(self) -> Self {
        match self {
            Self::Key => Self::Holder,
            Self::Holder => Self::Age,
            Self::Age => Self::Remaining,
            Self::Remaining => Self::Waiting,
            Self::Waiting => Self::Key,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Holder => "holder",
            Self::Age => "age",
            Self::Remaining => "remaining",
            Self::Waiting => "waiting",
        }
    }

    /// Sorts the rows; equal ones are sorted by name.
    pub(crate) fn apply(self, rows: &mut [Row]) {
        rows.sort_by(|one, other| self.compare(one, other).then_with(|| one.key.cmp(&other.key)));
    }

    fn compare(self, one: &Row, other: &Row) -> Ordering {
        match self {
            Self::Key => Ordering::Equal,
            Self::Holder => one.holder.parts().cmp(&other.holder.parts()),
            Self::Age => last_if_none(one.since).cmp(&last_if_none(other.since)),
            Self::Remaining => last_if_none(one.remaining).cmp(&last_if_none(other.remaining)),
            Self::Waiting => other.waiting.cmp(&one.waiting),
        }
    }
}

fn last_if_none<T>(value: Option<T>) -> (bool, Option<T>) {
    (value.is_none(), value)
}
