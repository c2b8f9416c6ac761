//! The arguments of the scripts, and the meaning of their replies.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use redis::Value;

use super::call::Call;
use super::cluster::hash_tag;
use super::scripts::Scripts;
use super::{QUEUE, QUEUE_OF};
use crate::store::held_flags::held_each;
use crate::store::queue::recheck_after;
use crate::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, ReleaseRequest, RenewRequest, Sharing, Waiting,
};
use crate::{FencingToken, Holder};

/// Builds a call of `acquire.lua` for a claim. The counter `fence` gives the token.
pub(super) fn acquire<'a>(
    scripts: &'a Scripts,
    request: &'a AcquireRequest,
    fence: &str,
) -> Call<'a> {
    let AcquireRequest { claim, ttl, waiting, hint, companion, .. } = request;
    let (keys, bytes) = size(claim);
    let mut script = Call::new(&scripts.acquire, 1 + 2 * keys, bytes);
    script.acquires(claim);
    script.arg(fence);
    add_keys(&mut script, claim, fence);
    script.arg(claim.value()).arg(millis(*ttl)).arg(&*mode(claim));
    match (waiting, claim.keys()) {
        (Waiting::Not, _) => script.arg(""),
        (Waiting::Queued, [_]) => script.arg("+"),
        _ => script.arg(details(claim, *ttl, *waiting)),
    };
    let was_queued = *waiting == Waiting::Told { again: true };
    match hint {
        Some(hint) => script.arg(*hint).arg(u8::from(was_queued)),
        None if was_queued || companion.is_some() => script.arg("").arg(u8::from(was_queued)),
        None => &mut script,
    };
    if let Some(companion) = companion {
        script.arg(companion.value());
    }
    script
}

/// Builds a call of `renew.lua` for a batch.
pub(super) fn renew<'a>(scripts: &'a Scripts, renewals: &[&RenewRequest], fence: &str) -> Call<'a> {
    // Read each value once: a claim may begin to share its lock between two reads.
    let values: Vec<_> = renewals.iter().map(|renewal| renewal.claim.value_now()).collect();
    // The counter is named only if it is needed: while a slot of a cluster moves to another node, a
    // script is refused unless all keys that it names are on the same side.
    let mut both = renewals.iter().zip(&values);
    let fenced = both.any(|(renewal, (_, shares))| *shares || renewal.fence.is_some());
    let first = renewals.first().map_or(fence, |renewal| renewal.claim.key().name());
    let (keys, bytes) = sizes(renewals.iter().map(|renewal| &renewal.claim));
    let mut script = Call::new(&scripts.renew, 1 + keys, bytes);
    script.arg(if fenced { fence } else { first });
    for key in renewals.iter().flat_map(|renewal| renewal.claim.keys()) {
        script.arg(key.name());
    }
    for (RenewRequest { claim, ttl, fence }, (value, shares)) in renewals.iter().zip(values) {
        script.arg(claim.keys().len()).arg(value).arg(millis(*ttl));
        match fence {
            _ if shares => script.arg(-1),
            fence => script.arg(fence.map_or(0, FencingToken::counter)),
        };
    }
    script
}

/// Builds a call of `delete.lua` for the exclusive locks of these claims.
pub(super) fn delete<'a>(scripts: &'a Scripts, claims: &[&Arc<Claim>]) -> Call<'a> {
    let (locks, bytes) = sizes(claims.iter().copied());
    let mut script = Call::new(&scripts.delete, locks, bytes);
    for claim in claims {
        script.arg(claim.key().name());
    }
    for claim in claims {
        script.arg(claim.value());
    }
    script
}

/// Builds a call of `release.lua` for a batch.
pub(super) fn release<'a>(
    scripts: &'a Scripts,
    releases: &[&ReleaseRequest],
    fence: &str,
) -> Call<'a> {
    let (keys, bytes) = sizes(releases.iter().map(|release| &release.claim));
    let mut script = Call::new(&scripts.release, 1 + 2 * keys, bytes);
    script.arg(fence);
    for release in releases {
        add_keys(&mut script, &release.claim, fence);
    }
    for ReleaseRequest { claim, after, quietly } in releases {
        script.arg(claim.keys().len()).arg(claim.value());
        match claim.queued().filter(|_| !quietly) {
            Some(_) => script.arg(claim.queued_as().token().to_string()),
            None => script.arg(""),
        };
        match after {
            _ if *quietly => script.arg(-1),
            after if after.is_zero() => script.arg(0),
            after => script.arg(millis(*after)),
        };
    }
    script
}

/// Builds a call of `mark_done.lua`. `after` is what the last run returned.
pub(super) fn mark_done<'a>(
    scripts: &'a Scripts,
    claim: &Claim,
    lasts: Duration,
    after: Option<&[u8]>,
    fence: &str,
) -> Call<'a> {
    let (_, bytes) = size(claim);
    let mut script = Call::new(&scripts.mark_done, 3, bytes);
    script.arg(fence);
    add_keys(&mut script, claim, fence);
    script.arg(claim.value()).arg(millis(lasts));
    if let Some(after) = after {
        script.arg(after);
    }
    script
}

/// Returns how many keys the claims have, and about how many bytes their arguments.
fn sizes<'a>(claims: impl Iterator<Item = &'a Arc<Claim>>) -> (usize, usize) {
    claims.map(|claim| size(claim)).fold((0, 0), |(keys, bytes), one| (keys + one.0, bytes + one.1))
}

fn size(claim: &Claim) -> (usize, usize) {
    let names: usize = claim.keys().iter().map(|key| 2 * key.name().len() + 24).sum();
    (claim.keys().len(), names + claim.value().len() + 32)
}

/// Returns what a waiter wants, as `queue.lua` reads it.
fn details(claim: &Claim, ttl: Duration, waiting: Waiting) -> String {
    let (ttl, mode, value) = (millis(ttl), mode(claim), claim.queued_as().value());
    let prefix = if matches!(waiting, Waiting::Told { .. }) { "t" } else { "" };
    match claim.keys() {
        [_] => format!("{ttl} {prefix}{mode} {value}"),
        keys => {
            let lengths: Vec<_> = keys.iter().map(|key| key.name().len().to_string()).collect();
            let names: String = keys.iter().map(LockKey::name).collect();
            format!("{ttl} {prefix}{mode} m {} {names}{value}", lengths.join(","))
        }
    }
}

/// The reply of `acquire.lua`.
pub(super) enum AcquireReply {
    /// The lock was granted or refused. If the reply says what the server's clock showed, that
    /// follows.
    Complete(AcquireOutcome, Option<u64>),
    /// There are more waiters than one run reads: run it again.
    Unfinished,
}

/// Reads the reply of `acquire.lua` to a claim.
pub(super) fn granted(reply: Value, request: &AcquireRequest) -> Option<AcquireReply> {
    let parts = match reply {
        Value::Int(twice) => {
            let twice = u64::try_from(twice).ok().filter(|twice| twice % 2 == 0)?;
            let fencing = FencingToken::read(twice / 2)?;
            return Some(AcquireReply::Complete(
                AcquireOutcome::Acquired { fencing, contended: false },
                None,
            ));
        }
        Value::BulkString(text) => {
            let token = std::str::from_utf8(&text).ok()?.strip_suffix(" wanted")?;
            let token = Some(token).filter(|digits| digits.bytes().all(|c| c.is_ascii_digit()))?;
            let fencing = FencingToken::read(token.parse().ok()?)?;
            return Some(AcquireReply::Complete(
                AcquireOutcome::Acquired { fencing, contended: true },
                None,
            ));
        }
        Value::Array(parts) => parts,
        _ => return None,
    };
    let [Value::BulkString(value), Value::Int(left), Value::Int(clock), Value::Int(ahead)] =
        parts.as_slice()
    else {
        return None;
    };
    let Ok(ahead) = u32::try_from(*ahead) else { return Some(AcquireReply::Unfinished) };
    let holder = holder(value, *left);
    let queued = (request.waiting != Waiting::Not).then(|| {
        // Redis counts in milliseconds: one more, and the lease has certainly ended.
        let left = holder.remaining.map(|left| left + Duration::from_millis(1));
        recheck_after(request.ttl, ahead, left, request.recheck_every)
    });
    let held = AcquireOutcome::Held { holder: Some(Box::new(holder)), queued };
    Some(AcquireReply::Complete(held, u64::try_from(*clock).ok()))
}

/// Reads the reply of `renew.lua` or `release.lua` about `request` claims: whether each held its
/// locks, and whether the script must run again, for more waiters than one run reads.
pub(super) fn held(reply: &Value, expected: usize) -> Option<(Vec<bool>, bool)> {
    let Value::BulkString(flags) = reply else { return None };
    let (flags, unfinished) = match flags.strip_suffix(b"+") {
        Some(flags) => (flags, true),
        None => (flags.as_slice(), false),
    };
    let held = held_each(flags).filter(|held| held.len() == expected)?;
    Some((held, unfinished))
}

/// Reads the reply of `holder.lua`.
pub(super) fn held_by(reply: Value) -> Option<Holder> {
    let Value::Array(parts) = reply else { return None };
    let [Value::BulkString(value), Value::Int(left)] = parts.as_slice() else { return None };
    Some(holder(value, *left))
}

/// Reads a holder. `left` is negative for a key without end.
pub(super) fn holder(value: &[u8], left: i64) -> Holder {
    let remaining = u64::try_from(left).ok().map(Duration::from_millis);
    Holder::from_bytes(value, remaining)
}

fn add_keys(script: &mut Call<'_>, claim: &Claim, fence: &str) {
    for key in claim.keys() {
        script.arg(key.name());
    }
    for key in claim.keys() {
        script.arg(queue_of(key.name(), fence));
    }
}

/// Returns the queue of a lock, in the lock's own hash slot; as in `holders.lua`.
pub(super) fn queue_of(lock: &str, fence: &str) -> String {
    match (hash_tag(lock), hash_tag(fence)) {
        (Some(_), _) => [QUEUE, lock].concat(),
        (None, Some(slot)) if lock.contains('}') => [QUEUE_OF, "{", slot, "}:", lock].concat(),
        (None, _) => [QUEUE_OF, "{", lock, "}"].concat(),
    }
}

fn mode(claim: &Claim) -> Cow<'static, str> {
    match claim.sharing() {
        Sharing::Exclusive => "x".into(),
        Sharing::Shared => "s".into(),
        Sharing::Permits(permits) => format!("p{permits}").into(),
    }
}

/// Rounded down: the lease on the server then ends a little earlier than requested, by less than
/// the drift that every lease allows for.
pub(super) fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    /// Red without: the `_ => None` in `held_each`, or the check of the length in `held`.
    #[test]
    fn only_ones_and_zeros_for_each_claim_say_what_is_held() {
        assert_eq!(held(&text("10"), 2), Some((vec![true, false], false)));
        assert_eq!(held(&text("01+"), 2), Some((vec![false, true], true)));
        let odd = [text("1"), text("1+"), text("111"), text("1x"), Value::Int(10), Value::Nil];
        for reply in odd {
            assert_eq!(held(&reply, 2), None, "{reply:?}");
        }
    }

    /// Red without: `FencingToken::read`.
    #[test]
    fn a_number_that_no_counter_shows_is_no_grant() {
        let key = LockKey::new("lock:", "a").unwrap();
        let request = AcquireRequest::new(Arc::new(Claim::new(key, "")), Duration::from_secs(1));
        let read = |reply| match granted(reply, &request)? {
            AcquireReply::Complete(outcome, None) => Some(outcome),
            other => panic!("{}", matches!(other, AcquireReply::Unfinished)),
        };
        let most = (1 << 53) - 1;
        for counter in [1, 42, most] {
            let fencing = FencingToken::from_counter(counter);
            let reply = Value::Int(2 * counter.cast_signed());
            assert_eq!(read(reply), Some(AcquireOutcome::Acquired { fencing, contended: false }));
            let reply = text(&format!("{counter} wanted"));
            assert_eq!(read(reply), Some(AcquireOutcome::Acquired { fencing, contended: true }));
        }
        for token in [0, 1, 85, -1, -84, i64::MIN, i64::MAX, 1 << 54] {
            assert_eq!(read(Value::Int(token)), None, "{token}");
        }
        let odd = ["84", "0 wanted", "+84 wanted", "84 wanted ", " wanted", "8.4e1 wanted"];
        for reply in odd.map(str::to_owned).into_iter().chain([format!("{} wanted", most + 1)]) {
            assert_eq!(read(text(&reply)), None, "{reply}");
        }
    }
}
