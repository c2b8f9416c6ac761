//! The words of a label that carry the result of a body, for callers that waited for it.

use std::borrow::Cow;
use std::time::Duration;

use percent_encoding::percent_decode_str;

use crate::lock::holder::{Holder, encoded};

/// The result of a body, as its note in the store says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResultWord {
    /// For how long the note was left.
    pub(crate) lasts: Duration,
    /// Unique to this run of the body.
    pub(crate) id: u64,
    /// What tells results of one key apart: the function and its type.
    pub(crate) of: String,
    /// The value, as the manager writes it.
    pub(crate) value: String,
}

impl ResultWord {
    /// A word for a label, with a leading space.
    pub(crate) fn to_word(&self) -> String {
        let Self { lasts, id, of, value } = self;
        format!(
            " result={}/{id}/{}/{}",
            lasts.as_millis(),
            encoded(of).replace('/', "%2F"),
            encoded(value)
        )
    }

    /// The word in the value of a note. Not by [`Holder::from_value`], which makes all words printable.
    pub(crate) fn read(label: &str) -> Option<Self> {
        let mut parts = label.splitn(4, '/');
        let lasts = Duration::from_millis(parts.next()?.parse().ok()?);
        let id = parts.next()?.parse().ok()?;
        Some(Self { lasts, id, of: decoded(parts.next()?)?, value: decoded(parts.next()?)? })
    }
}

fn decoded(word: &str) -> Option<String> {
    percent_decode_str(word).decode_utf8().ok().map(Cow::into_owned)
}

impl Holder {
    /// The result and its age, if this is a note of one that is left for some time.
    pub(crate) fn result(self) -> Option<(ResultWord, Duration)> {
        let result = self.result?;
        let age = result.lasts.checked_sub(self.remaining?)?;
        Some((*result, age))
    }
}
