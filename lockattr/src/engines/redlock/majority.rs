//! A yes or no for each claim of a batch, decided by a majority of the nodes.

use super::quorum::Quorum;
use super::round::Round;
use crate::store::StoreError;

/// The replies for one claim so far: whether it holds its lock.
#[derive(Default)]
struct ClaimReplies {
    needed: usize,
    yes: usize,
    no: usize,
    error: Option<StoreError>,
}

impl ClaimReplies {
    fn is_decided(&self, quorum: Quorum) -> bool {
        self.yes >= self.needed || quorum.is_beyond(self.needed, self.no)
    }

    fn count(&mut self, reply: Option<Result<bool, StoreError>>) {
        match reply {
            Some(Ok(true)) => self.yes += 1,
            Some(Ok(false)) => self.no += 1,
            Some(Err(error)) => self.error = Some(error),
            None => self.error = Some(StoreError::new("the server's reply was too short")),
        }
    }

    fn outcome(self, quorum: Quorum) -> Result<bool, StoreError> {
        match (self.yes >= self.needed, self.is_decided(quorum)) {
            (true, _) => Ok(true),
            (false, true) => Ok(false),
            (false, false) => {
                let last = self.error.map(|error| format!("; {error}")).unwrap_or_default();
                Err(StoreError::new(format!(
                    "{} servers confirmed the lock and {} did not, and {} must confirm it{last}",
                    self.yes, self.no, self.needed
                )))
            }
        }
    }
}

/// Counts replies until every claim is decided or all nodes have replied. A claim is `true` once as
/// many nodes as it `needed` reply yes, and `false` once that is impossible.
pub(super) async fn by_majority<F>(
    quorum: Quorum,
    needed: impl Iterator<Item = usize>,
    round: &mut Round<F>,
) -> Vec<Result<bool, StoreError>>
where
    F: Future<Output = Vec<Result<bool, StoreError>>>,
{
    let mut claims: Vec<_> =
        needed.map(|needed| ClaimReplies { needed, ..ClaimReplies::default() }).collect();
    while let Some((_, replies)) = round.next().await {
        let mut replies = replies.into_iter();
        claims.iter_mut().for_each(|claim| claim.count(replies.next()));
        if claims.iter().all(|claim| claim.is_decided(quorum)) {
            break;
        }
    }
    claims.into_iter().map(|claim| claim.outcome(quorum)).collect()
}
