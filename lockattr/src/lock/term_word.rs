//! The word of a label that carries the number of a leader's term.

use crate::lock::fencing::FencingToken;
use crate::lock::holder::Holder;

/// The number of a term, and when its leader requested the lock, by the leader's clock: two terms of one
/// process are not mistaken for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TermWord {
    number: FencingToken,
    since: u64,
}

impl TermWord {
    /// The term that this holder began under `number`.
    pub(crate) fn new(number: FencingToken, holder: &Holder) -> Self {
        Self { number, since: holder.since_millis() }
    }

    /// A word for a label, with a leading space.
    pub(crate) fn to_word(self) -> String {
        format!(" term={}/{}", self.number, self.since)
    }

    pub(crate) fn read(word: &str) -> Option<Self> {
        let (number, since) = word.split_once('/')?;
        let number = FencingToken::try_from(number.parse::<i64>().ok()?).ok()?;
        Some(Self { number, since: since.parse().ok()? })
    }
}

impl Holder {
    /// The number of the term of `leader`, if this is the note of that term.
    pub(crate) fn term_of(&self, leader: &Self) -> Option<FencingToken> {
        let is_of = (&self.host, self.process) == (&leader.host, leader.process);
        self.term
            .filter(|term| is_of && term.since == leader.since_millis())
            .map(|term| term.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(host: &str, process: u32, since: u64, word: &str) -> Holder {
        let value = format!("0 since={since} service=x host={host} pid={process}{word}");
        Holder::from_value(&value, None)
    }

    /// Red without: any of the comparisons in `term_of`.
    #[test]
    fn a_note_is_of_the_leader_that_left_it() {
        let number = FencingToken::try_from(7_i64).unwrap();
        let leader = holder("a", 1, 5, "");
        let word = TermWord::new(number, &leader).to_word();
        let note = holder("a", 1, 6, &word);
        assert_eq!(note.term_of(&leader), Some(number));
        for other in [holder("b", 1, 5, ""), holder("a", 2, 5, ""), holder("a", 1, 4, "")] {
            assert_eq!(note.term_of(&other), None, "{other:?}");
        }
        assert_eq!(holder("a", 1, 6, "").term_of(&leader), None);
    }
}
