//! How a process campaigns, and the work of each of its terms, drawn before they begin.

use std::time::Duration;

use lockattr::{LockOptions, Release};
use rand::RngExt;
use rand::rngs::StdRng;

use crate::chance::millis;

/// One campaign.
#[derive(Debug)]
pub(super) struct Campaign {
    pub(super) options: LockOptions,
    /// Whether a body that reports no progress for [`Ending::LONGEST`] loses its term.
    pub(super) bounds_silence: bool,
    /// When the caller drops it, if it does.
    pub(super) dropped_after: Option<Duration>,
    /// The pause after the campaign.
    pub(super) rest: Duration,
}

/// The work of one term.
#[derive(Debug)]
pub(super) struct TermWork {
    /// The number of writes, each with a report of progress.
    pub(super) writes: u32,
    /// The pause after each write.
    pub(super) every: Duration,
    /// How long the body then blocks its thread before it writes once more, if it does.
    pub(super) blocks: Option<Duration>,
    pub(super) ending: Ending,
}

/// What the body does at the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Ending {
    Resigns,
    /// It returns an error, which ends the campaign.
    Returns,
    Panics,
    /// It awaits and reports no progress. It resigns after [`Ending::LONGEST`].
    Hangs,
    /// The same, but it goes on to write.
    IsQuiet,
}

impl Ending {
    /// Longer than any `progress_within` of a campaign.
    pub(super) const LONGEST: Duration = Duration::from_millis(2500);
}

impl Campaign {
    pub(super) fn drawn(random: &mut StdRng) -> Self {
        // `max_hold` and `progress_within` are not shorter than the TTL, so they come with one.
        let ttl = millis(random, 300..1500);
        let mut options = LockOptions::new();
        let kind = random.random_range(0..8);
        match kind {
            0 => options = options.ttl(ttl),
            1 => options = options.ttl(ttl).max_hold(ttl + millis(random, 0..1500)),
            2..5 => options = options.ttl(ttl).progress_within(ttl + millis(random, 0..500)),
            5 => {
                let (within, longest) = (millis(random, 0..500), millis(random, 0..1500));
                options = options.ttl(ttl).progress_within(ttl + within).max_hold(ttl + longest);
            }
            _ => {}
        }
        if random.random_ratio(1, 3) {
            options = options.release(Release::Background);
        }
        let dropped_after = random.random_ratio(1, 6).then(|| millis(random, 0..5000));
        let bounds_silence = (2..=5).contains(&kind);
        Self { options, bounds_silence, dropped_after, rest: millis(random, 0..50) }
    }
}

impl TermWork {
    pub(super) fn drawn(random: &mut StdRng) -> Self {
        let blocks = match random.random_range(0..16) {
            0..3 => Some(millis(random, 300..2500)),
            3..5 => Some(millis(random, 1..300)),
            _ => None,
        };
        let ending = match random.random_range(0..16) {
            0..9 => Ending::Resigns,
            9..11 => Ending::Returns,
            11 => Ending::Panics,
            12..14 => Ending::Hangs,
            _ => Ending::IsQuiet,
        };
        let every = millis(random, 1..40);
        Self { writes: random.random_range(0..40), every, blocks, ending }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::stream;

    fn campaigns(seed: u64) -> Vec<Campaign> {
        let mut random = stream(seed, "campaigns");
        (0..300).map(|_| Campaign::drawn(&mut random)).collect()
    }

    fn terms(seed: u64) -> Vec<TermWork> {
        let mut random = stream(seed, "terms");
        (0..300).map(|_| TermWork::drawn(&mut random)).collect()
    }

    #[test]
    fn the_same_seed_has_the_same_campaigns_and_terms() {
        assert_eq!(format!("{:?}", campaigns(3)), format!("{:?}", campaigns(3)));
        assert_eq!(format!("{:?}", terms(3)), format!("{:?}", terms(3)));
        assert_ne!(format!("{:?}", campaigns(3)), format!("{:?}", campaigns(4)));
        assert_ne!(format!("{:?}", terms(3)), format!("{:?}", terms(4)));
    }

    /// A campaign with invalid options would never lead.
    #[tokio::test]
    async fn every_campaign_is_accepted_by_a_manager() {
        let manager = lockattr::LockManager::connect("memory://?ttl=2s").await.unwrap();
        for campaign in campaigns(5) {
            let led = manager.lead("leader", campaign.options.clone(), async |_term| true).await;
            assert!(matches!(led, Ok(true)), "{campaign:?}: {led:?}");
        }
    }

    #[test]
    fn every_kind_of_campaign_and_term_occurs() {
        let (campaigns, terms) = (campaigns(6), terms(6));
        assert!(campaigns.iter().any(|campaign| campaign.dropped_after.is_some()));
        for option in ["ttl: Some", "max_hold: Some", "progress_within: Some", "Background"] {
            assert!(format!("{campaigns:?}").contains(option), "{option} in {:?}", campaigns[0]);
        }
        assert!(terms.iter().any(|work| work.writes == 0));
        assert!(terms.iter().any(|work| work.blocks.is_some_and(|time| time.as_secs() > 0)));
        for ending in ["Resigns", "Returns", "Panics", "Hangs", "IsQuiet"] {
            assert!(format!("{terms:?}").contains(ending), "{ending}");
        }
    }
}
