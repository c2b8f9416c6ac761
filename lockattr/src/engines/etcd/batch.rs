//! Many claims in one request, and a result for each. Pure.

use super::failure::Failure;
use super::requests::MAX_OPERATIONS;
use crate::engines::sequenced::Entry;
use crate::store::StoreError;

/// The entries of all claims, each with the index of its claim.
pub(super) fn numbered(claims: &[Vec<Entry>]) -> Vec<(&Entry, usize)> {
    let claims = claims.iter().enumerate();
    claims.flat_map(|(nth, entries)| entries.iter().map(move |entry| (entry, nth))).collect()
}

/// Returns `true` for each claim that has entries, all of which are `true`.
pub(super) fn by_claim(
    claims: usize,
    entries: &[(&Entry, usize)],
    answers: Vec<Result<Vec<bool>, Failure>>,
) -> Vec<Result<bool, StoreError>> {
    let mut outcome: Vec<Option<Result<bool, StoreError>>> = vec![None; claims];
    for (chunk, answer) in entries.chunks(MAX_OPERATIONS).zip(answers) {
        for (at, (_, nth)) in chunk.iter().enumerate() {
            let one = match &answer {
                Ok(answers) => answers.get(at).copied().ok_or_else(odd_answer),
                Err(failure) => Err(failure.error.clone()),
            };
            let all = match (outcome[*nth].take(), one) {
                (None, one) => one,
                (Some(Err(error)), _) | (Some(Ok(_)), Err(error)) => Err(error),
                (Some(Ok(before)), Ok(one)) => Ok(before && one),
            };
            outcome[*nth] = Some(all);
        }
    }
    outcome.into_iter().map(|one| one.unwrap_or(Ok(false))).collect()
}

pub(super) fn odd_answer() -> StoreError {
    StoreError::new("etcd answered something else than was asked: is it etcd 3.4 or newer?")
}
