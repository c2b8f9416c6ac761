//! Whose turn it is in a queue, and which entries the others wait for. Pure.
//!
//! A queue is read from its head. An entry has its turn if all entries before it have theirs and it
//! is compatible with them: an exclusive one is the first, a shared one has only shared ones before
//! it, and one of `n` permits has fewer than `n` before it, all of which take permits. An entry
//! never loses its turn, because entries before it can only leave.

use super::recipe::Entry;
use crate::store::{OwnerToken, Sharing};

/// How many entries at the head of a queue have their turn.
pub(super) fn served(queue: &[Entry]) -> usize {
    let fits = |nth: &usize| fits(&queue[..*nth], &queue[*nth]);
    (0..queue.len()).take_while(fits).count()
}

/// Whether an entry is compatible with those before it, if all of them have their turn.
fn fits(before: &[Entry], entry: &Entry) -> bool {
    // They are compatible with each other, so the last one tells their kind.
    let Some(last) = before.last() else { return true };
    match entry.sharing {
        Sharing::Exclusive => false,
        Sharing::Shared => last.sharing == Sharing::Shared,
        Sharing::Permits(_) => is_permit(last) && before.len() < permits(entry),
    }
}

/// Returns the position of the claim with this token: the last entry, because an earlier one
/// belongs to a session that is over and is only not removed yet.
pub(super) fn position_of(queue: &[Entry], token: OwnerToken) -> Option<usize> {
    queue.iter().rposition(|entry| entry.token == token)
}

/// Returns entries of which one must leave before the `nth`, which has not its turn, can have it:
/// as few as suffice for a notification. It is one entry, unless there are permits.
pub(super) fn blockers(queue: &[Entry], nth: usize) -> &[Entry] {
    let entry = &queue[nth];
    let before = &queue[..nth];
    let other = match entry.sharing {
        Sharing::Exclusive => nth.checked_sub(1),
        Sharing::Shared => before.iter().rposition(|other| other.sharing != Sharing::Shared),
        Sharing::Permits(_) => before.iter().rposition(|other| !is_permit(other)),
    };
    match other {
        Some(other) => &queue[other..=other],
        // Fewer entries than its permits must be before it, so one of the last of them must leave.
        None if nth >= permits(entry) => &queue[nth - permits(entry)..nth],
        // There is room for it, but not for an entry before it that allows fewer permits.
        None => {
            let waiting = served(before).min(nth.saturating_sub(1));
            let room = queue.get(waiting).map_or(1, permits);
            &queue[waiting.saturating_sub(room)..=waiting]
        }
    }
}

fn is_permit(entry: &Entry) -> bool {
    matches!(entry.sharing, Sharing::Permits(_))
}

fn permits(entry: &Entry) -> usize {
    match entry.sharing {
        // A `u32` fits into a `usize`.
        Sharing::Permits(permits) => permits.max(1) as usize,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use Sharing::{Exclusive, Permits, Shared};

    fn queue(kinds: &[Sharing]) -> Vec<Entry> {
        let entry = |(sequence, sharing): (usize, &Sharing)| Entry {
            sequence: sequence as u64,
            token: OwnerToken::random(1),
            sharing: *sharing,
            several: false,
            id: sequence.to_string().into(),
        };
        kinds.iter().enumerate().map(entry).collect()
    }

    fn waits_for(kinds: &[Sharing], nth: usize) -> Vec<u64> {
        let queue = queue(kinds);
        assert!(served(&queue) <= nth, "it has its turn");
        blockers(&queue, nth).iter().map(|entry| entry.sequence).collect()
    }

    #[test]
    fn no_process_is_served_in_an_empty_line() {
        assert_eq!(served(&[]), 0);
    }

    #[test]
    fn an_exclusive_one_is_alone() {
        assert_eq!(served(&queue(&[Exclusive, Exclusive])), 1);
        assert_eq!(served(&queue(&[Exclusive, Shared])), 1);
        assert_eq!(served(&queue(&[Shared, Exclusive])), 1);
        assert_eq!(served(&queue(&[Permits(2), Exclusive])), 1);
    }

    #[test]
    fn those_that_share_are_together_up_to_the_first_who_does_not() {
        assert_eq!(served(&queue(&[Shared, Shared, Shared])), 3);
        assert_eq!(served(&queue(&[Shared, Shared, Exclusive, Shared])), 2);
        assert_eq!(served(&queue(&[Shared, Permits(9)])), 1);
    }

    #[test]
    fn permits_are_counted_by_each_ones_own_count() {
        assert_eq!(served(&queue(&[Permits(2); 4])), 2);
        assert_eq!(served(&queue(&[Permits(2), Permits(2), Permits(3)])), 3);
        assert_eq!(served(&queue(&[Permits(1), Permits(1), Permits(3)])), 1);
        assert_eq!(served(&queue(&[Permits(3), Shared])), 1);
    }

    #[test]
    fn an_exclusive_one_waits_for_the_one_before_it() {
        assert_eq!(waits_for(&[Exclusive; 4], 3), [2]);
        assert_eq!(waits_for(&[Shared, Shared, Exclusive], 2), [1]);
    }

    #[test]
    fn one_that_shares_waits_for_the_last_who_does_not() {
        assert_eq!(waits_for(&[Exclusive, Shared, Shared], 2), [0]);
        assert_eq!(waits_for(&[Shared, Exclusive, Exclusive, Shared, Shared], 4), [2]);
        assert_eq!(waits_for(&[Permits(2), Shared], 1), [0]);
    }

    #[test]
    fn one_with_permits_waits_for_as_many_as_there_are_permits() {
        assert_eq!(waits_for(&[Permits(2); 5], 4), [2, 3]);
        assert_eq!(waits_for(&[Permits(2), Permits(2), Exclusive, Permits(2)], 3), [2]);
        // There is room for three, but the second waits until it is alone.
        assert_eq!(waits_for(&[Permits(3), Permits(1), Permits(3)], 2), [0, 1]);
    }

    /// Removes entries from random queues one by one: an entry that gets its turn waited for the
    /// one removed.
    #[test]
    fn no_ones_turn_comes_without_one_in_the_way_going() {
        let mut random = StdRng::seed_from_u64(0);
        for _ in 0..2_000 {
            let kinds: Vec<_> = (0..7)
                .map(|_| match random.random_range(0..6) {
                    0 => Exclusive,
                    1 | 2 => Shared,
                    n => Permits(n - 2),
                })
                .collect();
            let mut queue = queue(&kinds);
            while !queue.is_empty() {
                let gone = random.random_range(0..queue.len());
                let waited: Vec<_> = (served(&queue)..queue.len())
                    .map(|nth| {
                        let way: Vec<_> =
                            blockers(&queue, nth).iter().map(|entry| entry.token).collect();
                        assert!(!way.contains(&queue[nth].token), "it waits for itself");
                        (queue[nth].token, way)
                    })
                    .collect();
                let gone = queue.remove(gone).token;
                let now = served(&queue);
                for (token, way) in waited.iter().filter(|(token, _)| *token != gone) {
                    let has_its_turn = position_of(&queue, *token).is_some_and(|nth| nth < now);
                    assert!(!has_its_turn || way.contains(&gone), "{kinds:?}");
                }
            }
        }
    }
}
