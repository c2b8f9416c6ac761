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
    responses: Vec<Result<Vec<bool>, Failure>>,
) -> Vec<Result<bool, StoreError>> {
    let mut outcome: Vec<Option<Result<bool, StoreError>>> = vec![None; claims];
    for (chunk, response) in entries.chunks(MAX_OPERATIONS).zip(responses) {
        for (index, (_, nth)) in chunk.iter().enumerate() {
            let held = match &response {
                Ok(responses) => responses.get(index).copied().ok_or_else(unexpected_response),
                Err(failure) => Err(failure.error.clone()),
            };
            let all = match (outcome[*nth].take(), held) {
                (None, held) => held,
                (Some(Err(error)), _) | (Some(Ok(_)), Err(error)) => Err(error),
                (Some(Ok(before)), Ok(held)) => Ok(before && held),
            };
            outcome[*nth] = Some(all);
        }
    }
    outcome.into_iter().map(|held| held.unwrap_or(Ok(false))).collect()
}

pub(super) fn unexpected_response() -> StoreError {
    StoreError::new("etcd sent an unexpected response: is it etcd 3.4 or newer?")
}
