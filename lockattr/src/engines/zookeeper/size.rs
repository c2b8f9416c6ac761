//! How much fits into one request. Servers close the connection on a larger one than their
//! `jute.maxbuffer`, and with it all other requests there. Pure.

use std::time::Duration;

use super::names;
use crate::engines::sequenced::{ClaimEntries, entry_value};
use crate::store::Claim;

/// The most bytes that a claim's entries may take: `jute.maxbuffer` is 1 MiB by default.
const MAX_CLAIM_BYTES: usize = 1_000_000;

/// The bytes of an entry besides its path and its text: ACL, mode, and the lengths of all parts.
const ENTRY_OVERHEAD: usize = 64;

/// The most checks in one request, because each is a line in the servers' logs.
pub(super) const MAX_CHECKS: usize = 100;

/// Why this claim does not fit, if so: each of its entries names all its keys.
pub(super) fn refuses(chroot: &str, claim: &Claim) -> Option<String> {
    let keys = claim.keys();
    if keys.len() < 2 {
        return None;
    }
    let name = names::entry(true, claim.sharing(), claim.token(), 0);
    let each = entry_value(claim, Duration::MAX).len() + "/".len() + name.len() + ENTRY_OVERHEAD;
    let paths: usize = keys.iter().map(|key| names::queue(chroot, key).len()).sum();
    // Each lock's own node is written, too.
    let bytes = (each + ENTRY_OVERHEAD) * keys.len() + 2 * paths;
    (bytes > MAX_CLAIM_BYTES).then(|| {
        format!(
            "{} keys are too many for one claim in ZooKeeper: each of its entries lists all of them, \
             which makes {bytes} bytes, and servers accept a megabyte per request",
            keys.len()
        )
    })
}

/// Splits claims into batches of [`MAX_CHECKS`] entries at most, or of one claim.
pub(super) fn batches<'a, 'h>(mut held: &'a [ClaimEntries<'h>]) -> Vec<&'a [ClaimEntries<'h>]> {
    let mut batches = Vec::new();
    while !held.is_empty() {
        let mut entries = 0;
        let fits = |one: &&ClaimEntries<'_>| {
            entries += one.entries.len();
            entries <= MAX_CHECKS
        };
        let many = held.iter().take_while(fits).count().max(1);
        let (batch, rest) = held.split_at(many);
        batches.push(batch);
        held = rest;
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::sequenced::Entry;
    use crate::store::{LockKey, OwnerToken, Sharing, Subscriber};

    fn claim(n: usize) -> Claim {
        let key = |nth| LockKey::new("lock:", &format!("a-name-of-twenty-{nth:03}")).unwrap();
        Claim::of(
            &Subscriber::new(|_| {}),
            key(0),
            (1..n).map(key),
            Sharing::Exclusive,
            "service=a",
        )
    }

    /// Red without: the comparison with `MAX_CLAIM_BYTES`.
    #[test]
    fn a_claim_is_measured_by_all_that_its_entries_say() {
        assert_eq!(refuses("/lockattr", &claim(100)), None);
        let refused = refuses("/lockattr", &claim(200)).expect("over a megabyte");
        assert!(refused.starts_with("200 keys"), "{refused}");
    }

    #[test]
    fn a_batch_has_so_many_entries_and_at_least_a_claim() {
        let (token, sharing) = (OwnerToken::random(1), Sharing::Exclusive);
        let entry = Entry { sequence: 1, token, sharing, several: true, id: "x".into() };
        let entries = vec![entry; 250];
        let held = |n| ClaimEntries { keys: &[], token, session: 1, entries: &entries[..n] };
        let claims: Vec<_> = [60, 40, 1, 250, 99, 1, 1].map(held).into();
        let sizes: Vec<_> = batches(&claims).iter().map(|batch| batch.len()).collect();
        assert_eq!(sizes, [2, 1, 1, 2, 1]);
        assert!(batches(&[]).is_empty());
    }
}
